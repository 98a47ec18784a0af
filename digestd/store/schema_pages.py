"""Migration for the pages. Floor 3. See schema.py."""

from __future__ import annotations

from sqlite_utils import Database

from digestd.store.schema import MIGRATIONS, run_script

_M_PAGES = """
CREATE INDEX paper_label_of ON paper_label (paper_id, label);
CREATE TABLE paper_touched (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- grows with each change, so that what changed since a look is found
  paper_id INTEGER NOT NULL UNIQUE REFERENCES paper(id)
);
CREATE TRIGGER paper_touch AFTER UPDATE OF record, merged_into, counted ON paper
BEGIN
  DELETE FROM paper_touched WHERE paper_id = NEW.id;
  INSERT INTO paper_touched (paper_id) VALUES (NEW.id);
END
"""


@MIGRATIONS()
def m005_pages(db: Database) -> None:
    """Labels by paper, and which papers changed last."""
    run_script(db, _M_PAGES)
