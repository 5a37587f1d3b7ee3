-- What makes a box undoable: its trash, where its files came from, what befell it.

-- Built anew, as SQLite cannot change a CHECK (https://sqlite.org/lang_altertable.html#otheralter);
-- references to it are by name and are checked before this step is committed.
CREATE TABLE boxes_3 (
    id             TEXT PRIMARY KEY,
    owner          TEXT NOT NULL,
    name           TEXT NOT NULL,
    title          TEXT,
    state          TEXT NOT NULL CHECK (state IN
        ('creating', 'stopped', 'starting', 'running', 'stopping', 'removing', 'failed',
         'restoring', 'trashed')),
    runtime        TEXT NOT NULL,
    image          TEXT NOT NULL,
    image_digest   TEXT NOT NULL,
    profile        TEXT NOT NULL,
    net            TEXT NOT NULL,
    limits         TEXT NOT NULL,             -- JSON of box_api::control::Limits
    allow          TEXT NOT NULL,             -- JSON list of `host`, `*.host`, `host:port`
    id_offset      INTEGER NOT NULL UNIQUE,   -- first host id of the box's 65,536
    created_at_ms  INTEGER NOT NULL,
    changed_at_ms  INTEGER NOT NULL,
    problem        TEXT,                      -- why it failed
    settings       TEXT NOT NULL DEFAULT '{}',  -- JSON of control::BoxSettings
    origin         TEXT,                      -- JSON of control::Origin
    trashed_at_ms  INTEGER,                   -- in the trash since
    keep_workspace INTEGER NOT NULL DEFAULT 0 -- the next box of its name gets the workspace (D26)
) STRICT;
INSERT INTO boxes_3 (id, owner, name, title, state, runtime, image, image_digest, profile, net,
    limits, allow, id_offset, created_at_ms, changed_at_ms, problem)
    SELECT id, owner, name, title, state, runtime, image, image_digest, profile, net,
    limits, allow, id_offset, created_at_ms, changed_at_ms, problem FROM boxes;
DROP TABLE boxes;
ALTER TABLE boxes_3 RENAME TO boxes;

-- A box on its way out has given its name back already.
CREATE UNIQUE INDEX live_box_names ON boxes (owner, name)
    WHERE state NOT IN ('removing', 'trashed');

-- What befell a box: out of memory, out of disk, its deadline, a freeze. Newest last, bounded.
CREATE TABLE box_events (
    id     INTEGER PRIMARY KEY,
    box_id TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,
    at_ms  INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    text   TEXT NOT NULL               -- one line for a person
) STRICT;
CREATE INDEX box_events_of_box ON box_events (box_id, id);

-- Ports of boxes shown on the machine's loopback (B94).
CREATE TABLE exposed_ports (
    box_id    TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,
    port      INTEGER NOT NULL,        -- inside
    host_port INTEGER NOT NULL UNIQUE, -- on 127.0.0.1
    PRIMARY KEY (box_id, port)
) STRICT;

-- How long a box has run since it was last started, for its deadline (A23, D20).
CREATE TABLE box_runs (
    box_id        TEXT PRIMARY KEY REFERENCES boxes (id) ON DELETE CASCADE,
    ran_ms        INTEGER NOT NULL,    -- without the time it was frozen
    counted_at_ms INTEGER NOT NULL,    -- when `ran_ms` was that
    frozen        INTEGER NOT NULL DEFAULT 0 -- the host froze it, and for longer than a copy takes
) STRICT;

-- Processes a person started to outlive them (`exec --detach`). An agent's are in `processes`.
CREATE TABLE detached (
    box_id        TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,
    name          TEXT NOT NULL,             -- as the guest knows it
    command       TEXT NOT NULL,             -- JSON list: program and arguments
    started_at_ms INTEGER NOT NULL,
    ended_at_ms   INTEGER,
    code          INTEGER,                   -- absent when it ended with its box, or unseen
    stdout_kept   INTEGER NOT NULL DEFAULT 0, -- output before this is in the log
    stderr_kept   INTEGER NOT NULL DEFAULT 0,
    log_bytes     INTEGER NOT NULL DEFAULT 0, -- length of the log when it held that much
    PRIMARY KEY (box_id, name)
) STRICT;

-- What owners said about hosts when they were asked, or set themselves.
CREATE TABLE net_rules (
    owner   TEXT NOT NULL,
    box_id  TEXT REFERENCES boxes (id) ON DELETE CASCADE,  -- absent: every box of the owner
    entry   TEXT NOT NULL,             -- `host`, `*.host`, `host:port`
    verdict TEXT NOT NULL CHECK (verdict IN ('allow', 'deny')),
    at_ms   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX net_rules_once ON net_rules (owner, ifnull(box_id, ''), entry);

-- The `host:port` a decision about the network is about; one open decision each.
ALTER TABLE decisions ADD COLUMN subject TEXT;
CREATE UNIQUE INDEX open_network_decisions ON decisions (box_id, subject)
    WHERE state = 'open' AND subject IS NOT NULL;

-- What connections carried, beside how often there were any.
ALTER TABLE net_log ADD COLUMN sent_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE net_log ADD COLUMN received_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE net_log ADD COLUMN credential TEXT;
