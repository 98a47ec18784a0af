"""Rules that rows keep, each as the SQL that finds what breaks it. Floor 3. Entry point: :data:`RULES`.

A rule's SQL returns (thing, found, expected) in words, and nothing where all is well.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule."""

    code: str
    what: str
    table: str  #: that it is about
    sql: str


_SIGHTING = "'topic ' || topic.slug || ' paper ' || paper.public_id"

#: the digest that may tell what was there before its reader came: the first that was mailed
_FIRST = """(SELECT MIN(first.id) FROM digest AS first
  WHERE first.subscription_id = digest.subscription_id AND first.mailed = 1)"""

_LEDGER = (
    Rule(
        "A2",
        "a paper is sighted once in a topic",
        "ledger",
        f"""SELECT {_SIGHTING} AS thing, twice.total || ' sightings' AS found, 'one' AS expected
        FROM (SELECT topic_id, paper_id, COUNT(*) AS total FROM ledger WHERE dup_of IS NULL AND topic_id IS NOT NULL
          GROUP BY topic_id, paper_id HAVING COUNT(*) > 1) AS twice
        JOIN topic ON topic.id = twice.topic_id JOIN paper ON paper.id = twice.paper_id""",  # noqa: S608 # our own text
    ),
    Rule(
        "A2",
        "what a topic's pages showed is sighted there",
        "listed",
        f"""SELECT {_SIGHTING} AS thing, 'no sighting' AS found, 'one, for a page showed it' AS expected
        FROM listed JOIN topic ON topic.id = listed.topic_id JOIN paper ON paper.id = listed.paper_id
        WHERE NOT EXISTS (SELECT 1 FROM ledger WHERE ledger.topic_id = listed.topic_id
          AND ledger.paper_id = listed.paper_id AND ledger.dup_of IS NULL)""",  # noqa: S608 # as above
    ),
    Rule(
        "A2",
        "every paper is sighted somewhere",
        "paper",
        """SELECT 'paper ' || paper.public_id AS thing, 'no sighting' AS found, 'at least one' AS expected FROM paper
        WHERE merged_into IS NULL AND NOT EXISTS (SELECT 1 FROM ledger WHERE ledger.paper_id = paper.id
          AND ledger.topic_id IS NOT NULL AND ledger.dup_of IS NULL)""",
    ),
    Rule(
        "A2",
        "a double sighting names the earlier one of the same paper and topic",
        "ledger",
        """SELECT 'ledger row ' || ledger.position AS thing,
          'row ' || ledger.dup_of AS found, 'the earlier sighting' AS expected
        FROM ledger LEFT JOIN ledger AS first ON first.position = ledger.dup_of
        WHERE ledger.dup_of IS NOT NULL AND (first.position IS NULL OR first.position >= ledger.position
          OR first.topic_id <> ledger.topic_id OR first.paper_id <> ledger.paper_id)""",
    ),
    Rule(
        "A2",
        "a topic's number of papers is that of its sightings",
        "topic",
        """SELECT 'topic ' || topic.slug AS thing, topic.known || ' papers known' AS found,
          COALESCE(counted.total, 0) || ', as sighted' AS expected
        FROM topic LEFT JOIN (SELECT topic_id, COUNT(*) AS total FROM ledger WHERE dup_of IS NULL AND topic_id IS NOT NULL
          GROUP BY topic_id) AS counted ON counted.topic_id = topic.id
        WHERE topic.known <> COALESCE(counted.total, 0)""",
    ),
    Rule(
        "A2",
        "a topic's papers of each day are those sighted",
        "topic_day",
        """SELECT 'topic ' || topic.slug || ' day ' || days.day AS thing, days.stored || ' papers' AS found,
          days.counted || ', as sighted' AS expected
        FROM (SELECT topic_id, day, SUM(stored) AS stored, SUM(counted) AS counted FROM (
            SELECT topic_id, day, papers AS stored, 0 AS counted FROM topic_day
            UNION ALL SELECT ledger.topic_id, paper.published, 0, COUNT(*) FROM ledger JOIN paper ON paper.id = ledger.paper_id
              WHERE ledger.topic_id IS NOT NULL AND ledger.dup_of IS NULL AND paper.counted = 1
              AND paper.published IS NOT NULL GROUP BY ledger.topic_id, paper.published) AS both_sides
          GROUP BY topic_id, day HAVING SUM(stored) <> SUM(counted)) AS days
        JOIN topic ON topic.id = days.topic_id""",
    ),
)

_DIGESTS = (
    Rule(
        "A3",
        "a paper is told once to a subscription",
        "told_item",
        """SELECT 'subscription ' || subscription.public_id || ' paper ' || paper.public_id AS thing,
          'told ' || twice.total || ' times' AS found, 'once' AS expected
        FROM (SELECT subscription_id, paper_id, COUNT(*) AS total FROM told_item WHERE once = 'paper'
          GROUP BY paper_id, subscription_id HAVING COUNT(*) > 1) AS twice
        JOIN subscription ON subscription.id = twice.subscription_id JOIN paper ON paper.id = twice.paper_id""",
    ),
    Rule(
        "A3",
        "a digest tells what its stretch of the ledger holds, and nothing foreign",
        "told_item",
        f"""SELECT 'digest ' || digest.digest_key || ' item at position ' || told_item.position AS thing,
          CASE WHEN ledger.position IS NULL THEN 'no such ledger row'
            WHEN told_item.subscription_id <> digest.subscription_id THEN 'an item of another subscription'
            WHEN told_item.once = 'revision' OR ledger.kind = 'revision' THEN 'a ' || ledger.kind || ' row told as ' || section
            WHEN ledger.paper_id <> told_item.paper_id THEN 'another paper''s row'
            WHEN ledger.topic_id <> told_item.topic_id THEN 'another topic''s row'
            ELSE 'a ' || ledger.kind || ' row outside of (' || digest.after_position || ', ' || digest.upto || ']' END AS found,
          'a row that it may tell' AS expected
        FROM told_item JOIN digest ON digest.id = told_item.digest_id
        LEFT JOIN ledger ON ledger.position = told_item.position
        WHERE ledger.position IS NULL OR told_item.subscription_id <> digest.subscription_id
          OR told_item.position > digest.upto OR (ledger.kind = 'revision') <> (told_item.once = 'revision')
          OR (told_item.once = 'paper' AND ledger.paper_id <> told_item.paper_id)
          OR (told_item.once <> 'revision' AND ledger.topic_id <> told_item.topic_id)
          OR (told_item.position > digest.after_position AND ledger.kind IN ('baseline', 'backfill') AND digest.id <> {_FIRST})
          OR (told_item.position <= digest.after_position AND (told_item.once = 'revision' OR digest.id <> {_FIRST}))""",  # noqa: S608 # as above
    ),
    Rule(
        "A3",
        "a digest passes over rows of its own stretch only, each once, and none that it tells",
        "passed_over",
        """SELECT 'digest ' || digest.digest_key || ' passed over at position ' || passed_over.position AS thing,
          CASE WHEN ledger.position IS NULL THEN 'no such ledger row'
            WHEN passed_over.position <= digest.after_position OR passed_over.position > digest.upto
              THEN 'a row outside of (' || digest.after_position || ', ' || digest.upto || ']'
            ELSE 'told as well' END AS found, 'a row that it does not tell' AS expected
        FROM passed_over JOIN digest ON digest.id = passed_over.digest_id
        LEFT JOIN ledger ON ledger.position = passed_over.position
        WHERE ledger.position IS NULL OR passed_over.position <= digest.after_position OR passed_over.position > digest.upto
          OR EXISTS (SELECT 1 FROM told_item WHERE told_item.digest_id = passed_over.digest_id
            AND told_item.position = passed_over.position)
        UNION ALL SELECT 'digest ' || digest.digest_key || ' passed over at position ' || twice.position,
          twice.total || ' times', 'once' FROM (SELECT digest_id, position, COUNT(*) AS total FROM passed_over
            GROUP BY digest_id, position HAVING COUNT(*) > 1) AS twice JOIN digest ON digest.id = twice.digest_id""",
    ),
    Rule(
        "A3",
        "the stretches of a subscription's digests do not overlap, and end where it was told",
        "digest",
        """SELECT 'digest ' || digest_key AS thing, 'stretch (' || after_position || ', ' || upto || ']' AS found,
          'one after ' || COALESCE(earlier, 0) || ' and not beyond ' || told_upto AS expected
        FROM (SELECT digest.*, subscription.told_upto, LAG(digest.upto) OVER (PARTITION BY digest.subscription_id
          ORDER BY digest.id) AS earlier FROM digest JOIN subscription ON subscription.id = digest.subscription_id) AS row_of
        WHERE after_position < COALESCE(earlier, 0) OR upto < after_position OR upto > told_upto""",
    ),
    Rule(
        "A3",
        "no subscription was told beyond the ledger",
        "subscription",
        """SELECT 'subscription ' || public_id AS thing, 'told up to ' || told_upto AS found,
          'at most ' || (SELECT COALESCE(MAX(position), 0) FROM ledger) AS expected
        FROM subscription WHERE told_upto > (SELECT COALESCE(MAX(position), 0) FROM ledger)""",
    ),
)

_SLOTS = (
    Rule(
        "A4",
        "a slot is served once",
        "slot",
        """SELECT 'subscription ' || subscription.public_id || ' slot ' || twice.label AS thing,
          twice.total || ' records' AS found, 'one' AS expected
        FROM (SELECT subscription_id, label, COUNT(*) AS total FROM slot GROUP BY subscription_id, label
          HAVING COUNT(*) > 1) AS twice JOIN subscription ON subscription.id = twice.subscription_id""",
    ),
    Rule(
        "A4",
        "a slot names a digest and a covering slot that are there",
        "slot",
        """SELECT 'subscription ' || subscription.public_id || ' slot ' || slot.label AS thing,
          CASE WHEN slot.coalesced_into IS NULL THEN 'digest ' || slot.digest_key ELSE 'slot ' || slot.coalesced_into END
            || ', which is not there' AS found, 'one of the subscription''s' AS expected
        FROM slot JOIN subscription ON subscription.id = slot.subscription_id
        WHERE (slot.digest_key IS NOT NULL AND NOT EXISTS (SELECT 1 FROM digest WHERE digest.digest_key = slot.digest_key
            AND digest.subscription_id = slot.subscription_id AND digest.mailed = 1))
          OR (slot.coalesced_into IS NOT NULL AND NOT EXISTS (SELECT 1 FROM slot AS newest
            WHERE newest.subscription_id = slot.subscription_id AND newest.label = slot.coalesced_into))""",
    ),
    Rule(
        "A4",
        "no slot is beyond the high water of its subscription",
        "slot",
        """SELECT 'subscription ' || subscription.public_id || ' slot ' || slot.label AS thing,
          'due at ' || slot.due_at AS found, 'not after ' || COALESCE(subscription.high_water_at, 'never') AS expected
        FROM slot JOIN subscription ON subscription.id = slot.subscription_id
        WHERE slot.label NOT LIKE '% by hand' AND slot.due_at > COALESCE(subscription.high_water_at, '')""",
    ),
    Rule(
        "A4",
        "a mailed digest has its slot and one delivery to its reader",
        "digest",
        """SELECT 'digest ' || digest.digest_key AS thing,
          (SELECT COUNT(*) FROM outbox WHERE outbox.digest_key = digest.digest_key AND outbox.kind = 'digest')
            || ' deliveries' AS found, 'one, and a slot' AS expected
        FROM digest JOIN subscription ON subscription.id = digest.subscription_id WHERE digest.mailed = 1
        AND (1 <> (SELECT COUNT(*) FROM outbox WHERE outbox.digest_key = digest.digest_key AND outbox.kind = 'digest')
          OR NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.digest_key = digest.digest_key AND outbox.kind = 'digest'
            AND outbox.reader_id = subscription.reader_id)
          OR NOT EXISTS (SELECT 1 FROM slot WHERE slot.subscription_id = digest.subscription_id
            AND slot.digest_key = digest.digest_key))""",
    ),
    Rule(
        "A4",
        "a delivery of a digest has its digest",
        "outbox",
        """SELECT 'delivery ' || outbox.id AS thing, 'digest ' || outbox.digest_key || ', which is not there' AS found,
          'one that is mailed' AS expected
        FROM outbox WHERE kind = 'digest' AND NOT EXISTS (SELECT 1 FROM digest WHERE digest.digest_key = outbox.digest_key
          AND digest.mailed = 1)""",
    ),
    Rule(
        "A4",
        "a subscription by the clock is due sometime",
        "subscription",
        """SELECT 'subscription ' || public_id AS thing, 'never due' AS found, 'the time of its next digest' AS expected
        FROM subscription WHERE state = 'active' AND each_snapshot = 0 AND next_due_at IS NULL""",
    ),
)

_STATES = "('ready', 'claimed', 'accepted', 'failed', 'suppressed', 'uncertain', 'poison')"

#: rows of the log that mean that nobody knew whether the mail had been taken
_OPENED = """EXISTS (SELECT 1 FROM attempt WHERE attempt.outbox_id = outbox.id AND attempt.outcome IN ('uncertain', 'reaped')
  AND (attempt.outcome = 'uncertain' OR attempt.dot_at IS NOT NULL))"""

_OUTBOX = (
    Rule(
        "A5",
        "a delivery is in a state that there is",
        "outbox",
        f"""SELECT 'delivery ' || id AS thing, 'state ' || state AS found, 'one of the seven' AS expected
        FROM outbox WHERE state NOT IN {_STATES}""",  # noqa: S608 # as above
    ),
    Rule(
        "A5",
        "a claimed delivery has an owner whose lease is not over",
        "outbox",
        """SELECT 'delivery ' || id AS thing, 'claimed until ' || COALESCE(lease_until, 'no time') AS found,
          'a lease that stands, an owner and a phase' AS expected
        FROM outbox WHERE state = 'claimed'
        AND (lease_until IS NULL OR lease_until < :now OR owner IS NULL OR COALESCE(phase, '') NOT IN ('env', 'dot'))""",
    ),
    Rule(
        "A6",
        "an accepted delivery has the relay's yes, its time, Message-ID and hash",
        "outbox",
        """SELECT 'delivery ' || id AS thing,
          'reply ' || COALESCE(CAST(reply_code AS TEXT), 'none') || ', time ' || COALESCE(settled_at, 'none')
            || ', hash ' || COALESCE(sha256, 'none') AS found, 'a reply 200 to 299, a time, a Message-ID and a hash' AS expected
        FROM outbox WHERE state = 'accepted'
        AND (reply_code IS NULL OR reply_code NOT BETWEEN 200 AND 299 OR settled_at IS NULL OR sha256 IS NULL
          OR message_id NOT LIKE '<%@%>')
        AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.outbox_id = outbox.id AND attempt.outcome = 'accepted'
          AND attempt.owner IS NULL)""",
    ),
    Rule(
        "A6",
        "every attempt of a delivery has the same bytes",
        "outbox",
        """SELECT 'delivery ' || id AS thing, other_bytes || ' attempts with other bytes' AS found, 'none' AS expected
        FROM outbox WHERE other_bytes > 0""",
    ),
    Rule(
        "A8",
        "a delivery that was uncertain is flagged, and no other",
        "outbox",
        f"""SELECT 'delivery ' || outbox.id AS thing,
          CASE WHEN flagged = 1 THEN 'flagged, never uncertain' ELSE 'uncertain once, not flagged' END AS found,
          CASE WHEN flagged = 1 THEN 'no flag' ELSE 'a flag' END AS expected
        FROM outbox WHERE (flagged = 1) <> {_OPENED} OR (state = 'uncertain' AND flagged = 0)""",  # noqa: S608 # as above
    ),
    Rule(
        "A8",
        "a delivery is accepted once",
        "outbox",
        """SELECT 'delivery ' || outbox_id AS thing, COUNT(*) || ' times accepted' AS found, 'once' AS expected
        FROM attempt WHERE outcome = 'sent' GROUP BY outbox_id HAVING COUNT(*) > 1""",
    ),
)

RULES: tuple[Rule, ...] = (*_LEDGER, *_DIGESTS, *_SLOTS, *_OUTBOX)
