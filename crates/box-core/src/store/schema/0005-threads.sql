-- Threads that stay: many in a box, parked, searched, undone; and who may look on from a browser.

-- Undo. When a snapshot of a box was taken and its threads' places were written down: one without
-- a line here is from before, and a restore of it leaves conversations as they are.
CREATE TABLE snapshot_moments (
    box_id TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,
    label  TEXT NOT NULL,
    at_ms  INTEGER NOT NULL,
    PRIMARY KEY (box_id, label)
) STRICT, WITHOUT ROWID;

-- Where each thread of the box stood at that moment.
CREATE TABLE snapshot_threads (
    box_id   TEXT NOT NULL,
    label    TEXT NOT NULL,
    thread   TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    epoch    INTEGER NOT NULL,
    before   INTEGER NOT NULL,               -- the row of its journal that came next
    known_as TEXT,                           -- what its agent called the conversation
    PRIMARY KEY (box_id, label, thread),
    FOREIGN KEY (box_id, label) REFERENCES snapshot_moments (box_id, label) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX snapshot_threads_of_thread ON snapshot_threads (thread);

-- Snapshots taken before turns.
CREATE TABLE restore_points (
    box_id  TEXT NOT NULL,
    label   TEXT NOT NULL,
    number  INTEGER NOT NULL,                -- counts a box's turns, as the label has it
    thread  TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    epoch   INTEGER NOT NULL,
    seq     INTEGER NOT NULL,                -- the row of the turn's prompt
    words   TEXT NOT NULL,                   -- the first of the prompt
    at_ms   INTEGER NOT NULL,
    took_us INTEGER,                         -- absent until it is there
    PRIMARY KEY (box_id, label),
    FOREIGN KEY (box_id, label) REFERENCES snapshot_moments (box_id, label) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX restore_points_of_thread ON restore_points (thread);

-- The highest number a box's restore points ever had: none comes twice.
CREATE TABLE restore_numbers (
    box_id TEXT PRIMARY KEY REFERENCES boxes (id) ON DELETE CASCADE,
    last   INTEGER NOT NULL
) STRICT;

-- Rows of journals that say: from here on it is again as it was before row `before`.
CREATE TABLE ways_back (
    thread TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    epoch  INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    before INTEGER NOT NULL,
    PRIMARY KEY (thread, epoch, at)
) STRICT, WITHOUT ROWID;

-- Search. What rows of journals say, without what looks like a secret, and cut.
CREATE TABLE search_docs (
    id     INTEGER PRIMARY KEY,
    thread TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    epoch  INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    kind   TEXT NOT NULL,                    -- box_api::search::SearchKind
    at_ms  INTEGER NOT NULL,
    text   TEXT NOT NULL,
    UNIQUE (thread, epoch, seq)
) STRICT;

CREATE VIRTUAL TABLE search_words USING fts5 (
    text, content = 'search_docs', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TRIGGER search_docs_come AFTER INSERT ON search_docs BEGIN
    INSERT INTO search_words (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER search_docs_go AFTER DELETE ON search_docs BEGIN
    INSERT INTO search_words (search_words, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER search_docs_change AFTER UPDATE OF text ON search_docs BEGIN
    INSERT INTO search_words (search_words, rowid, text) VALUES ('delete', old.id, old.text);
    INSERT INTO search_words (rowid, text) VALUES (new.id, new.text);
END;

-- Journals from before there was a search: rows after `seq` are to be taken in.
CREATE TABLE search_backlog (
    thread TEXT PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    epoch  INTEGER NOT NULL,
    seq    INTEGER NOT NULL
) STRICT;
INSERT INTO search_backlog (thread, epoch, seq) SELECT id, epoch, 0 FROM threads;

-- Decisions. What is to be filled in, what is to be read first, what was filled in, and what is
-- said about the end of it, such as that its time ran out.
ALTER TABLE decisions ADD COLUMN form TEXT;     -- JSON of box_api::decision::Form
ALTER TABLE decisions ADD COLUMN text TEXT;
ALTER TABLE decisions ADD COLUMN content TEXT;  -- JSON object, by the names of fields
ALTER TABLE decisions ADD COLUMN note TEXT;

-- Parking. Threads that wait for a time: each is in its thread's saved state as well, and both are
-- written in one commit.
CREATE TABLE parked (
    thread   TEXT PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
    why      TEXT NOT NULL CHECK (why IN ('limit', 'person')),
    until_ms INTEGER,                        -- absent: until somebody resumes it
    since_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The page. Links that pair a browser (D9): `key` is the SHA-256 of the code, which is nowhere.
CREATE TABLE pairing_links (
    key        BLOB PRIMARY KEY,
    owner      TEXT NOT NULL,
    tier       TEXT NOT NULL,
    ends_at_ms INTEGER NOT NULL
) STRICT;

-- Browsers that were paired (D30): `key` is the SHA-256 of what the cookie holds.
CREATE TABLE sign_ins (
    id         TEXT PRIMARY KEY,
    key        BLOB NOT NULL UNIQUE,
    owner      TEXT NOT NULL,
    tier       TEXT NOT NULL,
    agent      TEXT NOT NULL,                -- what the browser calls itself
    made_at_ms INTEGER NOT NULL,
    seen_at_ms INTEGER NOT NULL,
    ends_at_ms INTEGER NOT NULL
) STRICT;

-- Threads in lists. What a list shows besides the columns there were, as the last commit left it.
ALTER TABLE threads ADD COLUMN summary TEXT NOT NULL DEFAULT '{}'; -- JSON of thread::listed::Summary
ALTER TABLE threads ADD COLUMN archived_at_ms INTEGER;             -- put away by its owner
ALTER TABLE threads ADD COLUMN forked_from TEXT;                   -- the thread its journal began as
