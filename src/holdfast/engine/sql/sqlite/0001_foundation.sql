-- The tables of a Holdfast store. Times are microseconds since 1970 in UTC. Tenant leads every index.
-- Rows name their tenant and stream by a small number of this file: it is in every row, so its size counts.

-- Which store this is: another file that takes the name of this one is another store, whatever it holds.
CREATE TABLE meta (store BLOB NOT NULL);
INSERT INTO meta (store) VALUES (randomblob(16));

CREATE TABLE tenants (
    num  INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

CREATE TABLE records (
    num          INTEGER PRIMARY KEY,
    tenant       INTEGER NOT NULL,
    kind         TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    scope_user   TEXT,
    scope_agent  TEXT,
    scope_thread TEXT,
    created      INTEGER NOT NULL,
    time         INTEGER NOT NULL,
    expires      INTEGER,
    tags         TEXT    NOT NULL,
    body         BLOB    NOT NULL,
    stream       INTEGER,
    base         INTEGER NOT NULL,
    head         INTEGER NOT NULL,
    digest       BLOB    NOT NULL,
    derived      INTEGER NOT NULL,
    hour         INTEGER NOT NULL
);
CREATE UNIQUE INDEX records_name ON records (tenant, kind, id);
-- By the hour of the last activity, not its moment: most appends leave this index alone.
CREATE INDEX records_hour   ON records (tenant, kind, hour);
CREATE INDEX records_expires ON records (tenant, kind, expires)     WHERE expires      IS NOT NULL;
CREATE INDEX records_user   ON records (tenant, scope_user, kind)   WHERE scope_user   IS NOT NULL;
CREATE INDEX records_agent  ON records (tenant, scope_agent, kind)  WHERE scope_agent  IS NOT NULL;
CREATE INDEX records_thread ON records (tenant, scope_thread, kind) WHERE scope_thread IS NOT NULL;

CREATE TABLE tags (
    tenant INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    tag    TEXT NOT NULL,
    id     TEXT NOT NULL,
    PRIMARY KEY (tenant, kind, tag, id)
) WITHOUT ROWID;

-- AUTOINCREMENT: a number is never given out twice, so a process that remembers an erased one finds nothing.
CREATE TABLE strands (
    num    INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL,
    stream INTEGER NOT NULL,
    kind   TEXT    NOT NULL,
    id     TEXT    NOT NULL,
    parent INTEGER,
    base   INTEGER NOT NULL,
    digest BLOB    NOT NULL
);
CREATE UNIQUE INDEX strands_stream ON strands (tenant, stream);
CREATE INDEX strands_owner ON strands (tenant, kind, id);
CREATE INDEX strands_parent ON strands (tenant, parent) WHERE parent IS NOT NULL;

-- Rows arrive in the order of commits, so pages fill up; the index finds a stream's part of them.
-- Here "stream" is the strand's num.
CREATE TABLE events (
    num      INTEGER PRIMARY KEY,
    tenant   INTEGER NOT NULL,
    stream   INTEGER NOT NULL,
    position INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    key      TEXT,
    time     INTEGER NOT NULL,
    digest   BLOB    NOT NULL,
    body     BLOB    NOT NULL
);
CREATE UNIQUE INDEX events_position ON events (tenant, stream, position);
CREATE UNIQUE INDEX events_key      ON events (tenant, stream, key) WHERE key IS NOT NULL;

CREATE TABLE graves (
    tenant INTEGER NOT NULL,
    grave  BLOB NOT NULL,
    PRIMARY KEY (tenant, grave)
) WITHOUT ROWID;

CREATE TABLE feed (
    tenant   INTEGER NOT NULL,
    position INTEGER NOT NULL,
    time     INTEGER NOT NULL,
    actor    TEXT,
    scope_user   TEXT,
    scope_agent  TEXT,
    scope_thread TEXT,
    changes  TEXT    NOT NULL,
    PRIMARY KEY (tenant, position)
) WITHOUT ROWID;
-- A scope is what all changes of a commit share; '' where they differ, and each says its own.
CREATE INDEX feed_user  ON feed (tenant, scope_user, position);
CREATE INDEX feed_actor ON feed (tenant, actor) WHERE actor IS NOT NULL;

-- How much a tenant may hold. What it holds is counted from the day on which a limit is set.
CREATE TABLE limits (
    tenant  INTEGER NOT NULL,
    measure TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    most    INTEGER NOT NULL,
    used    INTEGER NOT NULL,
    PRIMARY KEY (tenant, measure, kind)
) WITHOUT ROWID;

-- For people with their own tools. A body is two characters that name its encoding ("j1": JSON), then the value.
CREATE VIEW holdfast_records AS
    SELECT t.name AS tenant, r.kind, r.id, r.scope_user AS user_id, r.scope_agent AS agent_id, r.scope_thread AS thread,
           r.tags, r.stream, r.head,
           strftime('%Y-%m-%dT%H:%M:%SZ', r.created / 1000000, 'unixepoch') AS created,
           strftime('%Y-%m-%dT%H:%M:%SZ', r.time    / 1000000, 'unixepoch') AS active,
           CASE WHEN substr(r.body, 1, 2) = CAST('j1' AS BLOB) THEN CAST(substr(r.body, 3) AS TEXT) END AS content
    FROM records r JOIN tenants t ON t.num = r.tenant;

CREATE VIEW holdfast_events AS
    SELECT t.name AS tenant, s.kind AS owner, s.id, s.stream, e.position AS number, e.kind, e.key,
           strftime('%Y-%m-%dT%H:%M:%SZ', e.time / 1000000, 'unixepoch') AS time,
           CASE WHEN substr(e.body, 1, 2) = CAST('j1' AS BLOB) THEN CAST(substr(e.body, 3) AS TEXT) END AS content
    FROM tenants t JOIN strands s ON s.tenant = t.num JOIN events e ON e.tenant = t.num AND e.stream = s.num;

CREATE VIEW holdfast_threads AS
    SELECT tenant, id AS thread, user_id, agent_id, tags, head AS entries, created, active
    FROM holdfast_records WHERE kind = 'thread';

CREATE VIEW holdfast_entries AS
    SELECT tenant, id AS thread, number, kind, key, time, content FROM holdfast_events WHERE owner = 'thread';

CREATE VIEW holdfast_states AS
    SELECT tenant, id AS thread, number AS revision, time, content FROM holdfast_events WHERE owner = 'state';

CREATE VIEW holdfast_checkpoints AS
    SELECT tenant, thread, id AS checkpoint, created, content FROM holdfast_records WHERE kind = 'checkpoint';

CREATE VIEW holdfast_runs AS
    SELECT tenant, thread, id AS run, tags AS status, head AS events, created, active, content
    FROM holdfast_records WHERE kind = 'run';

CREATE VIEW holdfast_steps AS
    SELECT tenant, id AS run, number, kind, time, content FROM holdfast_events WHERE owner = 'run';

CREATE VIEW holdfast_handoffs AS
    SELECT tenant, id AS thread, number AS revision, time, content FROM holdfast_events WHERE owner = 'handoff';

CREATE VIEW holdfast_memories AS
    SELECT tenant, id AS memory, user_id, agent_id, created AS recorded, content
    FROM holdfast_records WHERE kind = 'memory';

-- The newest version of every file that was not deleted. What is in it is the field "content" of the content.
CREATE VIEW holdfast_files AS
    SELECT r.tenant, r.content ->> '$.folder' AS folder, substr(r.id, 34) AS path, r.head AS version, r.user_id,
           r.agent_id, r.created, e.time, e.content
    FROM holdfast_records r JOIN holdfast_events e
         ON e.tenant = r.tenant AND e.stream = r.stream AND e.number = r.head
    WHERE r.kind = 'file' AND e.kind = 'written';

-- What graphs save, as it is stored: a frame is what changed since the one before, and holds values or says where they are.
CREATE VIEW holdfast_frames AS
    SELECT r.tenant, r.thread, r.content ->> '$.namespace' AS namespace, e.number, e.kind, e.time, e.content
    FROM holdfast_records r JOIN holdfast_events e ON e.tenant = r.tenant AND e.stream = r.stream
    WHERE r.kind = 'graph';
