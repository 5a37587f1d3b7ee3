-- Boxes, credentials (never a secret), placeholders, and what egress knows of each box.
-- Times are UTC milliseconds. Owners are written `uid:<number>`.

CREATE TABLE boxes (
    id            TEXT PRIMARY KEY,
    owner         TEXT NOT NULL,
    name          TEXT NOT NULL,
    title         TEXT,
    state         TEXT NOT NULL CHECK (state IN
        ('creating', 'stopped', 'starting', 'running', 'stopping', 'removing', 'failed')),
    runtime       TEXT NOT NULL,
    image         TEXT NOT NULL,
    image_digest  TEXT NOT NULL,
    profile       TEXT NOT NULL,
    net           TEXT NOT NULL,
    limits        TEXT NOT NULL,            -- JSON of box_api::control::Limits
    allow         TEXT NOT NULL,            -- JSON list of `host`, `*.host`, `host:port`
    id_offset     INTEGER NOT NULL UNIQUE,  -- first host id of the box's 65,536
    created_at_ms INTEGER NOT NULL,
    changed_at_ms INTEGER NOT NULL,
    problem       TEXT                      -- why it failed
) STRICT;

-- A box being removed has given its name back already.
CREATE UNIQUE INDEX live_box_names ON boxes (owner, name) WHERE state <> 'removing';

CREATE TABLE credentials (
    owner       TEXT NOT NULL,
    kind        TEXT NOT NULL,
    name        TEXT NOT NULL,
    prefix      TEXT NOT NULL,     -- how every secret of its form begins, such as `sk-ant-oat01-`
    chars       INTEGER NOT NULL,  -- how long it is
    added_at_ms INTEGER NOT NULL,
    PRIMARY KEY (owner, kind, name)
) STRICT;

-- What a box holds instead of a credential. Worthless outside the box, so it may be kept here.
CREATE TABLE placeholders (
    box_id      TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,
    kind        TEXT NOT NULL,
    name        TEXT NOT NULL,
    placeholder TEXT NOT NULL UNIQUE,
    made_at_ms  INTEGER NOT NULL,
    PRIMARY KEY (box_id, kind, name)
) STRICT;

-- The stable fake address of each name a box has asked for. Append-only while the box lives.
CREATE TABLE egress_names (
    box_id  TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,
    name    TEXT NOT NULL,
    address INTEGER NOT NULL,  -- IPv4, host byte order
    PRIMARY KEY (box_id, name),
    UNIQUE (box_id, address)
) STRICT;

-- What egress refused or let through, newest last; old rows go when a box has too many.
CREATE TABLE net_log (
    id      INTEGER PRIMARY KEY,
    box_id  TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,
    at_ms   INTEGER NOT NULL,
    host    TEXT NOT NULL,
    verdict TEXT NOT NULL,
    rule    TEXT NOT NULL,
    times   INTEGER NOT NULL
) STRICT;
CREATE INDEX net_log_of_box ON net_log (box_id, id);
