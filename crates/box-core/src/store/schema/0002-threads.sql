-- Threads, their journals, decisions, and the agents' processes. Times are UTC milliseconds.

CREATE TABLE threads (
    id            TEXT PRIMARY KEY,
    box_id        TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,
    owner         TEXT NOT NULL,
    agent         TEXT NOT NULL,
    title         TEXT NOT NULL,
    state         TEXT NOT NULL,             -- as lists show it
    asks          TEXT NOT NULL CHECK (asks IN ('person', 'nobody')),
    epoch         INTEGER NOT NULL,          -- raised when the journal is rebuilt
    commits       INTEGER NOT NULL,          -- who commits must have seen the commit before
    saved         TEXT NOT NULL,             -- JSON of the state machine after the last commit
    created_at_ms INTEGER NOT NULL,
    changed_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX threads_of_box ON threads (box_id, created_at_ms);

-- What a thread says, in order. `text` is set where the row can grow; `item` then holds none of it.
CREATE TABLE journal (
    thread TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    epoch  INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    at_ms  INTEGER NOT NULL,
    item   TEXT NOT NULL,                    -- JSON of box_api::thread::Item
    text   TEXT,
    PRIMARY KEY (thread, epoch, seq)
) STRICT;

-- The agent's own lines behind the rows, whole. Text rows have many.
CREATE TABLE journal_lines (
    thread TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    epoch  INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    line   TEXT NOT NULL
) STRICT;
CREATE INDEX journal_lines_of_row ON journal_lines (thread, epoch, seq);

-- What a person is asked. Never deleted while its box lives.
CREATE TABLE decisions (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    box_id       TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,
    thread       TEXT REFERENCES threads (id) ON DELETE CASCADE,
    owner        TEXT NOT NULL,
    generation   INTEGER NOT NULL,           -- of the agent that asks
    about        TEXT NOT NULL,
    title        TEXT NOT NULL,
    call         TEXT,
    options      TEXT NOT NULL,              -- JSON list of box_api::thread::DecisionOption
    state        TEXT NOT NULL CHECK (state IN ('open', 'answered', 'cancelled', 'lost')),
    option       TEXT,                       -- what was chosen
    reason       TEXT,                       -- why it was lost
    who          TEXT,                       -- who answered or cancelled
    opened_at_ms INTEGER NOT NULL,
    closed_at_ms INTEGER
) STRICT;
CREATE INDEX open_decisions ON decisions (thread) WHERE state = 'open';

-- Processes of agents, held by box-guest.
CREATE TABLE processes (
    thread      TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    generation  INTEGER NOT NULL,
    name        TEXT NOT NULL,               -- as the guest knows it
    state       TEXT NOT NULL CHECK (state IN ('wanted', 'running', 'over')),
    stdout_kept INTEGER NOT NULL,            -- output before this is in the tables here
    stderr_kept INTEGER NOT NULL,
    last_words  TEXT NOT NULL,               -- the end of its standard error
    input_end   INTEGER NOT NULL,            -- input ever put into the outbox
    PRIMARY KEY (thread, generation)
) STRICT;

-- Lines for an agent that the guest has not taken yet, at their offset in the whole input.
CREATE TABLE outbox (
    thread     TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    generation INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    line       BLOB NOT NULL,
    PRIMARY KEY (thread, generation, at)
) STRICT, WITHOUT ROWID;

-- The beginning of a line longer than the guest can keep, in pieces.
CREATE TABLE partial_lines (
    thread     TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    generation INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    bytes      BLOB NOT NULL,
    PRIMARY KEY (thread, generation, at)
) STRICT;
