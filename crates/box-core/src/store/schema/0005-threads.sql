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

-- Tokens of programs (D29): `key` is the SHA-256 of the token, which is nowhere.
CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    key        BLOB NOT NULL UNIQUE,
    owner      TEXT NOT NULL,
    tier       TEXT NOT NULL,
    label      TEXT NOT NULL,
    scope      TEXT NOT NULL,                -- box_api::page::TokenScope
    box_id     TEXT REFERENCES boxes (id) ON DELETE CASCADE, -- of scope `acp`
    made_at_ms INTEGER NOT NULL,
    seen_at_ms INTEGER,                      -- absent: never
    ends_at_ms INTEGER NOT NULL
) STRICT;

-- Push (C110-C117). The host's key for push services (RFC 8292), made at first use.
CREATE TABLE push_key (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    public     BLOB NOT NULL,                -- uncompressed point of P-256
    seal       TEXT REFERENCES seals (id),   -- absent: nothing seals here, and `private` is bare
    private    BLOB NOT NULL,                -- PKCS#8
    made_at_ms INTEGER NOT NULL
) STRICT;

-- Browsers that are told, one subscription a sign-in.
CREATE TABLE push_devices (
    sign_in    TEXT PRIMARY KEY REFERENCES sign_ins (id) ON DELETE CASCADE,
    endpoint   TEXT NOT NULL UNIQUE,
    p256dh     BLOB NOT NULL,
    auth       BLOB NOT NULL,
    key        BLOB NOT NULL,                -- `push_key.public` it was made with
    origin     TEXT NOT NULL,                -- of the page, to which notifications lead
    names_only INTEGER NOT NULL,
    made_at_ms INTEGER NOT NULL,
    told_at_ms INTEGER,
    problem    TEXT
) STRICT, WITHOUT ROWID;

-- What happened and is perhaps to be told: written in the commit in which it happens, so that
-- nothing is lost with a host, and only where somebody is told at all.
CREATE TABLE push_notes (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    kind     TEXT NOT NULL CHECK (kind IN ('decision', 'over')),
    box_id   TEXT NOT NULL,
    thread   TEXT,
    decision INTEGER,
    at_ms    INTEGER NOT NULL
) STRICT;
CREATE TRIGGER push_notes_of_decisions AFTER INSERT ON decisions
WHEN new.state = 'open' AND EXISTS (SELECT 1 FROM push_devices) BEGIN
    INSERT INTO push_notes (kind, box_id, thread, decision, at_ms)
        VALUES ('decision', new.box_id, new.thread, new.id, new.opened_at_ms);
END;
-- A turn is over, failed or parked. What is copied (a fork, an import) was never at work here.
CREATE TRIGGER push_notes_of_threads AFTER UPDATE OF state ON threads
WHEN new.state IN ('idle', 'background', 'failed', 'parked')
    AND old.state IN ('starting', 'running', 'needs_you', 'asks')
    AND EXISTS (SELECT 1 FROM push_devices) BEGIN
    INSERT INTO push_notes (kind, box_id, thread, at_ms)
        VALUES ('over', new.box_id, new.id, new.changed_at_ms);
END;
CREATE TRIGGER push_notes_few AFTER INSERT ON push_notes BEGIN
    DELETE FROM push_notes WHERE id <= new.id - 512;
END;

-- Messages on their way. A newer one of the same topic takes the place of the one before.
CREATE TABLE push_queue (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    sign_in    TEXT NOT NULL REFERENCES push_devices (sign_in) ON DELETE CASCADE,
    topic      TEXT NOT NULL,
    body       TEXT NOT NULL,                -- JSON, as the browser reads it
    decision   INTEGER,                      -- told only while it is open
    tries      INTEGER NOT NULL DEFAULT 0,
    next_at_ms INTEGER NOT NULL,
    ends_at_ms INTEGER NOT NULL,
    UNIQUE (sign_in, topic)
) STRICT;

-- What models cost, as the way out read it in their answers.
CREATE TABLE model_usage (
    box_id      TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,
    day         INTEGER NOT NULL,            -- days since 1970, UTC
    thread      TEXT NOT NULL,               -- empty where it is not known whose it was
    model       TEXT NOT NULL,
    credential  TEXT NOT NULL,               -- the kind of the account
    answers     INTEGER NOT NULL,
    unread      INTEGER NOT NULL,            -- answers without figures
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    PRIMARY KEY (box_id, day, thread, model, credential)
) STRICT, WITHOUT ROWID;

-- What a person granted on top of a limit: of the box, of a day of it (`whose` is the day), of a
-- thread (`whose` is its id).
CREATE TABLE budget_grants (
    box_id  TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,
    span    TEXT NOT NULL,
    measure TEXT NOT NULL,
    whose   TEXT NOT NULL,
    amount  INTEGER NOT NULL,
    PRIMARY KEY (box_id, span, measure, whose)
) STRICT, WITHOUT ROWID;

-- Decisions that ask about a limit.
CREATE TABLE budget_asks (
    decision INTEGER PRIMARY KEY REFERENCES decisions (id) ON DELETE CASCADE,
    box_id   TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,
    span     TEXT NOT NULL,
    measure  TEXT NOT NULL,
    whose    TEXT NOT NULL,
    amount   INTEGER NOT NULL,               -- of the limit when it was reached
    stays_at INTEGER                         -- tokens used by then, where a person left it at that
) STRICT;

-- Restores of boxes that have begun, and not ended as long as there is a line: the files may be the
-- snapshot's already. The next host carries them through, files and conversations.
CREATE TABLE restores (
    box_id TEXT PRIMARY KEY REFERENCES boxes (id) ON DELETE CASCADE,
    label  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
