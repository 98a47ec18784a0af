"""``digestd follow``: a reader comes, or changes. Floor 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, arguments, json_option, say, say_json, shared_options

if TYPE_CHECKING:
    from digestd.flows.subscribe import Followed
    from digestd.model.subscription import Schedule, Subscription


@click.command("follow")
@click.argument("address", metavar="ADDRESS")
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@click.option("--daily", metavar="HH:MM", help="Every day at this time.")
@click.option("--weekly", metavar="DAY[,DAY]", help="On these days of the week; see --at.  [default: mon]")
@click.option("--monthly", metavar="DAY", help="On this day of the month; see --at.")
@click.option(
    "--at", "at", default="07:30", show_default=True, metavar="HH:MM", help="Time of day for weekly and monthly."
)
@click.option("--cron", metavar="EXPR", help="By a cron expression of five fields.")
@click.option("--each-snapshot", is_flag=True, help="As soon as something new is seen.")
@click.option(
    "--zone", default="UTC", show_default=True, metavar="NAME", help="Time zone of these times, like Europe/Berlin."
)
@click.option(
    "--first",
    default="latest:10",
    show_default=True,
    metavar="WHAT",
    help="First digest: none, latest:N or since:DATE.",
)
@click.option("--format", "shape", type=click.Choice(["html", "text"]), default="html", show_default=True)
@click.option(
    "--include", multiple=True, metavar="RULE", help="Only papers that fit, like 'author:Ana Lima' or 'diffusion'."
)
@click.option("--exclude", multiple=True, metavar="RULE", help="No papers that fit, like 'category:cs.CV'.")
@click.option("--budget", type=click.IntRange(1, 1000), metavar="N", help="Papers shown in full in a digest.")
@click.option("--alert", is_flag=True, help="A mail as soon as a topic starts to rise or to cool.")
@click.option("--all-quiet-mail", is_flag=True, help="A short mail when there is nothing new.")
@json_option
@shared_options
def command(
    shared: Shared,
    address: str,
    topics: tuple[str, ...],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    as_json: bool,
    **given: object,
) -> int:
    """Let a reader follow topics, or change how.

    ADDRESS may have a name: "Ana Lima <ana@example.org>". channel:NAME is a channel of the
    settings, a webhook or a chat. A topic is named as its pages name it; one that is not known yet is
    made. What a filter would have hidden is shown before anything is sent.
    """
    from digestd.addresses import parse_reader
    from digestd.filters import lint, parse_rule
    from digestd.flows.subscribe import Wish, follow
    from digestd.model.subscription import Filter, Preferences
    from digestd.schedule import find_zone, parse_first

    with arguments():
        wanted = Filter(tuple(map(parse_rule, include)), tuple(map(parse_rule, exclude)))
        find_zone(str(given["zone"]))
        wish = Wish(
            reader=parse_reader(address, allow_local=True),
            topics=topics,
            schedule=_schedule(given),
            zone=str(given["zone"]),
            preferences=Preferences(
                format=str(given["shape"]),
                budget=given["budget"] if isinstance(given["budget"], int) else None,
                all_quiet=bool(given["all_quiet_mail"]),
                alert=bool(given["alert"]),
                first=parse_first(str(given["first"])),
                filter=wanted,
            ),
        )
    with shared.app() as app:
        app.check_channel(wish.reader)
        done = follow(app.store, wish, app.vocabulary, now=app.now)
        names = {topic.slug: topic.name for topic in app.store.history.topics()}
    for warning in lint(wanted):
        click.echo(f"warning: filter: {warning}", err=True)
    if as_json:
        say_json(subscription_json(done.subscription))
    else:
        _tell(done, names)
    return 0


def _schedule(given: dict[str, object]) -> Schedule:
    from digestd.schedule import parse_schedule

    kinds = [name for name in ("daily", "weekly", "monthly", "cron", "each_snapshot") if given[name]]
    if len(kinds) > 1:
        raise click.UsageError(
            f"one schedule is wanted, found --{kinds[0].replace('_', '-')} and --{kinds[1].replace('_', '-')}"
        )
    match kinds:
        case ["daily"]:
            return parse_schedule(f"daily {given['daily']}")
        case ["monthly"]:
            return parse_schedule(f"monthly {given['monthly']} {given['at']}")
        case ["cron"]:
            return parse_schedule(f"cron {given['cron']}")
        case ["each_snapshot"]:
            return parse_schedule("each-snapshot")
        case _:
            return parse_schedule(f"weekly {given['weekly'] or 'mon'} {given['at']}")


def _tell(done: Followed, names: dict[str, str]) -> None:
    subscription = done.subscription
    topics = ", ".join(names[slug] for slug in subscription.topics)
    say(f"{subscription.reader.address} follows {topics}: {when(subscription)}")
    for name in done.started:
        say(f"  {name} is new here: nobody followed it, and no page of it has been read")
    if done.preview is not None:
        say(f"  the filter {done.preview}")


def when(subscription: Subscription) -> str:
    """Return when a reader is told: "Mondays at 07:30, Europe/Berlin; next: Mon, Dec 7"."""
    from digestd.phrases import weekday_day
    from digestd.schedule import find_zone, in_words

    words = in_words(subscription.schedule, subscription.zone)
    if subscription.paused_until is not None:
        words += f"; paused until {weekday_day(subscription.paused_until)}"
    if subscription.next_due_at is None:
        return words
    local = subscription.next_due_at.astimezone(find_zone(subscription.zone))
    return f"{words}; next: {weekday_day(local.date())}"


def subscription_json(subscription: Subscription) -> dict[str, object]:
    """Return a subscription as the commands print it."""
    from digestd.cli.common import instant_text
    from digestd.filters import format_rule
    from digestd.schedule import format_schedule, in_words

    wanted, reader = subscription.preferences, subscription.reader
    return {
        "address": reader.address,
        "envelope": reader.envelope,
        "name": reader.name,
        "smtputf8": reader.smtputf8,
        "subscription": subscription.public_id,
        "state": str(subscription.state),
        "topics": list(subscription.topics),
        "schedule": format_schedule(subscription.schedule),
        "schedule_words": in_words(subscription.schedule, subscription.zone),
        "zone": subscription.zone,
        "next_due_at": instant_text(subscription.next_due_at),
        "paused_until": subscription.paused_until and subscription.paused_until.isoformat(),
        "format": wanted.format,
        "budget": wanted.budget,
        "all_quiet": wanted.all_quiet,
        "alert": wanted.alert,
        "include": [format_rule(rule) for rule in wanted.filter.include],
        "exclude": [format_rule(rule) for rule in wanted.filter.exclude],
        "told_upto": subscription.told_upto,
        "declared": subscription.declared,
    }
