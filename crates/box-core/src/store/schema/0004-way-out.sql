-- The way out: accounts that stay, and what a box may reach.

-- Keys that secrets are sealed with; the key itself is never here. The id names it where it is kept.
CREATE TABLE seals (
    id         TEXT PRIMARY KEY,
    method     TEXT NOT NULL,     -- `keyring`, `systemd-creds`, `passphrase`
    wrapped    BLOB,              -- the key, encrypted by systemd-creds or under the passphrase
    salt       BLOB,
    rounds     INTEGER,
    made_at_ms INTEGER NOT NULL
) STRICT;

-- Where a secret comes from, where it goes if its kind does not say, and the secret, sealed.
ALTER TABLE credentials ADD COLUMN source TEXT NOT NULL DEFAULT '{"from":"typed"}';
ALTER TABLE credentials ADD COLUMN form TEXT NOT NULL DEFAULT '{}';
ALTER TABLE credentials ADD COLUMN sealed BLOB;
ALTER TABLE credentials ADD COLUMN seal TEXT REFERENCES seals (id);
ALTER TABLE credentials ADD COLUMN fetched_at_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE credentials ADD COLUMN expires_at_ms INTEGER;
ALTER TABLE credentials ADD COLUMN problem TEXT;

-- What is known of the last connection of a line, and of all of them.
ALTER TABLE net_log ADD COLUMN way TEXT NOT NULL DEFAULT '';
ALTER TABLE net_log ADD COLUMN address TEXT NOT NULL DEFAULT '';
ALTER TABLE net_log ADD COLUMN open_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE net_log ADD COLUMN process TEXT;      -- JSON of network::NetProcess
ALTER TABLE net_log ADD COLUMN exchanges TEXT NOT NULL DEFAULT '[]'; -- JSON list of traffic::Exchange
CREATE INDEX net_log_by_time ON net_log (at_ms);

-- What went over a box's network in all: lines of its log go.
CREATE TABLE net_totals (
    box_id         TEXT PRIMARY KEY REFERENCES boxes (id) ON DELETE CASCADE,
    sent_bytes     INTEGER NOT NULL,
    received_bytes INTEGER NOT NULL
) STRICT;
INSERT INTO net_totals (box_id, sent_bytes, received_bytes)
    SELECT box_id, sum(sent_bytes), sum(received_bytes) FROM net_log GROUP BY box_id;

-- The `name:port` a box may reach although its address is private (D10). A clone has none of them.
CREATE TABLE net_private (
    box_id TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,
    entry  TEXT NOT NULL,
    at_ms  INTEGER NOT NULL,
    PRIMARY KEY (box_id, entry)
) STRICT;

-- Logins made inside boxes. The tokens are sealed by the way out, which alone opens them; NULL where
-- they are in its memory only.
CREATE TABLE logins (
    box_id   TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,
    kind     TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    sealed   TEXT,
    PRIMARY KEY (box_id, kind)
) STRICT;
