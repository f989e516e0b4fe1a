-- The tables of a Holdfast store. Times are microseconds since 1970 in UTC. Tenant leads every index.
-- Rows name their tenant by a small number of this database: it is in every row and every index, so its size counts.
-- Names are compared byte by byte (COLLATE "C"), so that they sort as on the other engines whatever the server's locale.

-- One row per tenant. Whoever writes for a tenant holds its row until the commit is durable; feed is the last position
-- given out, and 0 means that nothing was ever written. A tenant that is there is counted up, not inserted once more: that
-- would use up a number each time.
CREATE TABLE tenants (
    num  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text    COLLATE "C" NOT NULL UNIQUE CHECK (name <> ''),
    feed bigint  NOT NULL
) WITH (fillfactor = 50);

-- The number of a tenant, of the one that this session speaks for if none is named, and NULL where there is none.
-- In a query it stands as (SELECT holdfast_tenant(…)), so that it is looked up once for all rows.
CREATE FUNCTION holdfast_tenant(named text DEFAULT current_setting('holdfast.tenant', true)) RETURNS integer
    STABLE PARALLEL SAFE RETURN (SELECT num FROM tenants WHERE name = named);

-- Hold a tenant's row until the end of the transaction, and give out the next feed positions; return the first.
CREATE FUNCTION holdfast_take(named text, count integer DEFAULT 1) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    last bigint;
BEGIN
    UPDATE tenants SET feed = feed + count WHERE name = named RETURNING feed INTO last;
    IF NOT FOUND THEN
        INSERT INTO tenants AS t (name, feed) VALUES (named, count)
            ON CONFLICT (name) DO UPDATE SET feed = t.feed + count RETURNING feed INTO last;
    END IF;
    RETURN last - count + 1;
END
$$;

CREATE TABLE records (
    tenant       integer NOT NULL,
    kind         text    COLLATE "C" NOT NULL,
    id           text    COLLATE "C" NOT NULL,
    version      bigint  NOT NULL,
    scope_user   text    COLLATE "C",
    scope_agent  text    COLLATE "C",
    scope_thread text    COLLATE "C",
    created      bigint  NOT NULL,
    time         bigint  NOT NULL,
    expires      bigint,
    tags         text    COLLATE "C" NOT NULL,
    body         bytea   NOT NULL,
    stream       bigint,
    base         bigint  NOT NULL,
    head         bigint  NOT NULL,
    digest       bytea   NOT NULL,
    derived      boolean NOT NULL,
    hour         bigint  NOT NULL,
    PRIMARY KEY (tenant, kind, id)
) WITH (fillfactor = 80);
-- By the hour of the last activity, not its moment: most appends leave every index alone and update in place.
-- The condition always holds. Only a query that has it too may use this index: in a table that was never analysed it seems
-- as good as the key to a planner who looks for one record, and all of a kind are looked at.
CREATE INDEX records_hour   ON records (tenant, kind, hour) WHERE hour > -10000000000;
CREATE INDEX records_expires ON records (tenant, kind, expires)    WHERE expires      IS NOT NULL;
CREATE INDEX records_user   ON records (tenant, scope_user, kind)   WHERE scope_user   IS NOT NULL;
CREATE INDEX records_agent  ON records (tenant, scope_agent, kind)  WHERE scope_agent  IS NOT NULL;
CREATE INDEX records_thread ON records (tenant, scope_thread, kind) WHERE scope_thread IS NOT NULL;

CREATE TABLE tags (
    tenant integer NOT NULL,
    kind   text    COLLATE "C" NOT NULL,
    tag    text    COLLATE "C" NOT NULL,
    id     text    COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, kind, tag, id)
);

CREATE TABLE strands (
    tenant integer NOT NULL,
    stream bigint  NOT NULL,
    kind   text    COLLATE "C" NOT NULL,
    id     text    COLLATE "C" NOT NULL,
    parent bigint,
    base   bigint  NOT NULL,
    digest bytea   NOT NULL
);
CREATE INDEX strands_owner ON strands (tenant, kind, id);
CREATE INDEX strands_parent ON strands (tenant, parent) WHERE parent IS NOT NULL;
-- The key comes last: of indexes that seem equal the planner takes the newest.
ALTER TABLE strands ADD PRIMARY KEY (tenant, stream);

-- Numbers first: after a text they would begin at the next multiple of eight. Rows are added and never changed.
CREATE TABLE events (
    stream   bigint  NOT NULL,
    position bigint  NOT NULL,
    time     bigint  NOT NULL,
    tenant   integer NOT NULL,
    kind     text    COLLATE "C" NOT NULL,
    key      text    COLLATE "C",
    digest   bytea   NOT NULL,
    body     bytea   NOT NULL,
    PRIMARY KEY (tenant, stream, position) WITH (fillfactor = 100)
);
CREATE UNIQUE INDEX events_key ON events (tenant, stream, key) WHERE key IS NOT NULL;

CREATE TABLE graves (
    tenant integer NOT NULL,
    grave  bytea   NOT NULL,
    PRIMARY KEY (tenant, grave)
);

CREATE TABLE feed (
    position     bigint  NOT NULL,
    time         bigint  NOT NULL,
    tenant       integer NOT NULL,
    actor        text    COLLATE "C",
    scope_user   text    COLLATE "C",
    scope_agent  text    COLLATE "C",
    scope_thread text    COLLATE "C",
    changes      text    COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, position) WITH (fillfactor = 100)
);
-- A scope is what all changes of a commit share; '' where they differ, and each says its own.
CREATE INDEX feed_user  ON feed (tenant, scope_user, position) WITH (fillfactor = 100);
CREATE INDEX feed_actor ON feed (tenant, actor) WHERE actor IS NOT NULL;

-- How much a tenant may hold. What it holds is counted from the day on which a limit is set.
CREATE TABLE limits (
    tenant  integer NOT NULL,
    measure text    COLLATE "C" NOT NULL,
    kind    text    COLLATE "C" NOT NULL,
    most    bigint  NOT NULL,
    used    bigint  NOT NULL,
    PRIMARY KEY (tenant, measure, kind)
);

-- The wall between tenants: a session sees the tenant that it named, by SET holdfast.tenant, and may write for no other.
-- It binds the tables' owner too; only superusers and BYPASSRLS roles see over it. A setting that was never made reads as
-- NULL, one whose transaction has ended as '', which names no tenant: in both cases no row matches.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['records', 'tags', 'strands', 'events', 'graves', 'feed', 'limits'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant_wall ON %I USING (tenant = (SELECT holdfast_tenant()))', name);
    END LOOP;
END
$$;

-- The list of tenants is for their owner alone, so here the wall binds everyone else.
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_wall ON tenants USING (name = current_setting('holdfast.tenant', true));

-- For people with their own tools. A body is two characters that name its encoding ("j1": JSON), then the value.
-- The views read with the rights of whoever asks, so the wall stands in them as well.
CREATE VIEW holdfast_records WITH (security_invoker = true) AS
    SELECT t.name AS tenant, r.kind, r.id, r.scope_user AS user_id, r.scope_agent AS agent_id, r.scope_thread AS thread,
           r.tags, r.stream, r.head,
           to_char(to_timestamp(r.created / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS created,
           to_char(to_timestamp(r.time    / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS active,
           CASE WHEN substr(r.body, 1, 2) = 'j1'::bytea THEN convert_from(substr(r.body, 3), 'UTF8') END AS content
    FROM records r JOIN tenants t ON t.num = r.tenant;

CREATE VIEW holdfast_events WITH (security_invoker = true) AS
    SELECT t.name AS tenant, s.kind AS owner, s.id, s.stream, e.position AS number, e.kind, e.key,
           to_char(to_timestamp(e.time / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS time,
           CASE WHEN substr(e.body, 1, 2) = 'j1'::bytea THEN convert_from(substr(e.body, 3), 'UTF8') END AS content
    FROM tenants t JOIN strands s ON s.tenant = t.num JOIN events e ON e.tenant = t.num AND e.stream = s.stream;

CREATE VIEW holdfast_threads WITH (security_invoker = true) AS
    SELECT tenant, id AS thread, user_id, agent_id, tags, head AS entries, created, active
    FROM holdfast_records WHERE kind = 'thread';

CREATE VIEW holdfast_entries WITH (security_invoker = true) AS
    SELECT tenant, id AS thread, number, kind, key, time, content FROM holdfast_events WHERE owner = 'thread';

CREATE VIEW holdfast_states WITH (security_invoker = true) AS
    SELECT tenant, id AS thread, number AS revision, time, content FROM holdfast_events WHERE owner = 'state';

CREATE VIEW holdfast_checkpoints WITH (security_invoker = true) AS
    SELECT tenant, thread, id AS checkpoint, created, content FROM holdfast_records WHERE kind = 'checkpoint';

CREATE VIEW holdfast_runs WITH (security_invoker = true) AS
    SELECT tenant, thread, id AS run, tags AS status, head AS events, created, active, content
    FROM holdfast_records WHERE kind = 'run';

CREATE VIEW holdfast_steps WITH (security_invoker = true) AS
    SELECT tenant, id AS run, number, kind, time, content FROM holdfast_events WHERE owner = 'run';

CREATE VIEW holdfast_handoffs WITH (security_invoker = true) AS
    SELECT tenant, id AS thread, number AS revision, time, content FROM holdfast_events WHERE owner = 'handoff';

CREATE VIEW holdfast_memories WITH (security_invoker = true) AS
    SELECT tenant, id AS memory, user_id, agent_id, created AS recorded, content
    FROM holdfast_records WHERE kind = 'memory';

-- The newest version of every file that was not deleted. What is in it is the field "content" of the content.
CREATE VIEW holdfast_files WITH (security_invoker = true) AS
    SELECT r.tenant, r.content::json ->> 'folder' AS folder, substr(r.id, 34) AS path, r.head AS version, r.user_id,
           r.agent_id, r.created, e.time, e.content
    FROM holdfast_records r JOIN holdfast_events e
         ON e.tenant = r.tenant AND e.stream = r.stream AND e.number = r.head
    WHERE r.kind = 'file' AND e.kind = 'written';

-- What graphs save, as it is stored: a frame is what changed since the one before, and holds values or says where they are.
CREATE VIEW holdfast_frames WITH (security_invoker = true) AS
    SELECT r.tenant, r.thread, r.content::json ->> 'namespace' AS namespace, e.number, e.kind, e.time, e.content
    FROM holdfast_records r JOIN holdfast_events e ON e.tenant = r.tenant AND e.stream = r.stream
    WHERE r.kind = 'graph';
