-- The tables of a Holdfast store. Times are microseconds since 1970 in UTC. Tenant leads every index.
-- Rows name their tenant by a small number of this database: it is in every row and every index, so its size counts.
-- Names are compared byte by byte (COLLATE "C"), so that they sort as on the other engines whatever the server's locale.

-- One row per tenant. Whoever writes for a tenant holds its row until the commit is durable; feed is the last position
-- given out. A tenant that is there is counted up, not inserted once more: that would use up a number each time.
CREATE TABLE tenants (
    num  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text    COLLATE "C" NOT NULL UNIQUE CHECK (name <> ''),
    feed bigint  NOT NULL
) WITH (fillfactor = 50);

-- The number of a tenant, of the one that this session speaks for if none is named, and NULL where there is none.
-- In a query it stands as (SELECT holdfast_tenant(…)), so that it is looked up once for all rows.
CREATE FUNCTION holdfast_tenant(named text DEFAULT current_setting('holdfast.tenant', true)) RETURNS integer
    STABLE PARALLEL SAFE RETURN (SELECT num FROM tenants WHERE name = named);

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

-- Writing. Whoever writes takes the tenant's row and keeps it until the commit is durable, so commits of a tenant are made
-- one after the other, and positions of the feed become visible in their order. The functions have the rights of whoever calls them.

-- Take a tenant's row before anything is read, for work that reads and writes in turns; say whether it is a new one.
CREATE FUNCTION holdfast_take(named text, OUT made boolean) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM tenants WHERE name = named FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO tenants (name, feed) VALUES (named, 0) ON CONFLICT (name) DO NOTHING;
        made := FOUND;
        PERFORM FROM tenants WHERE name = named FOR UPDATE;
    END IF;
END
$$;

-- What a plan needs to know, as it is at one moment (STABLE: all statements see what the calling one sees). The rows are of
-- five sorts: f, the last position of the feed, as version; r, a record, with the transaction that wrote it as seen;
-- e, an event under one of the keys, with its key as id and its position as version; g, a grave, as digest; l, a limit,
-- with its measure as id, what may be held as version, and what is held as head.
CREATE FUNCTION holdfast_load(named text, names json, keys json, tombs bytea[]) RETURNS TABLE (
    sort text, kind text, id text, version bigint, body bytea, scope_user text, scope_agent text, scope_thread text,
    created bigint, "time" bigint, expires bigint, tags text, stream bigint, base bigint, head bigint, digest bytea,
    derived boolean, seen text
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    num integer;
    last bigint;
BEGIN
    PERFORM set_config('holdfast.tenant', named, true);
    SELECT t.num, t.feed INTO num, last FROM tenants t WHERE t.name = named;
    RETURN QUERY SELECT 'f', NULL, NULL, coalesce(last, 0), NULL::bytea, NULL, NULL, NULL, NULL::bigint, NULL::bigint,
        NULL::bigint, NULL, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bytea, NULL::boolean, NULL;
    RETURN QUERY SELECT 'l', l.kind, l.measure, l.most, NULL::bytea, NULL, NULL, NULL, NULL::bigint, NULL::bigint,
        NULL::bigint, NULL, NULL::bigint, NULL::bigint, l.used, NULL::bytea, NULL::boolean, NULL
        FROM limits l WHERE l.tenant = num;
    RETURN QUERY SELECT 'r', r.kind, r.id, r.version, r.body, r.scope_user, r.scope_agent, r.scope_thread, r.created, r.time,
            r.expires, r.tags, r.stream, r.base, r.head, r.digest, r.derived, r.xmin::text
        FROM json_to_recordset(names) AS n(kind text, id text),
            LATERAL (SELECT *, xmin FROM records WHERE tenant = num AND kind = n.kind AND id = n.id OFFSET 0) r;
    IF keys IS NOT NULL THEN
        RETURN QUERY SELECT 'e', e.kind, e.key, e.position, e.body, NULL, NULL, NULL, NULL::bigint, e.time, NULL::bigint, NULL,
                e.stream, NULL::bigint, NULL::bigint, e.digest, NULL::boolean, NULL
            FROM json_to_recordset(keys) AS k(kind text, id text, key text),
                LATERAL (SELECT stream FROM records WHERE tenant = num AND kind = k.kind AND id = k.id OFFSET 0) r,
                LATERAL (SELECT * FROM events WHERE tenant = num AND stream = r.stream AND key = k.key OFFSET 0) e;
    END IF;
    IF tombs IS NOT NULL THEN
        RETURN QUERY SELECT 'g', NULL, NULL, NULL::bigint, NULL::bytea, NULL, NULL, NULL, NULL::bigint, NULL::bigint, NULL::bigint,
                NULL, NULL::bigint, NULL::bigint, NULL::bigint, g.grave, NULL::boolean, NULL
            FROM graves g WHERE g.tenant = num AND g.grave = ANY (tombs);
    END IF;
END
$$;

-- Write what a plan decided, if all that it was decided from is still so; otherwise fail as one who lost a race, and nothing
-- happened. Conditions: read are records that were only looked at, tombs are graves that were not there, places are
-- strands, and their last events that are needed (0: none), grown is by how much each limit comes nearer. A record names as seen
-- the transaction that wrote the row that was read, NULL when there was none; that changes with every write. Once the
-- tenant's row is taken, nobody else can commit for this tenant, and as each statement sees all that is committed when it
-- begins, what is checked after that stays so. What the feed does not speak of need not be serial: then only who takes
-- the row for good, as an erasure does, is kept out.
CREATE FUNCTION holdfast_commit(
    named text, patience text, idle text, longest text, serial boolean, read json, tombs bytea[], places json, grown json,
    wrote json, bodies bytea[], moved json, begun json, added json, contents bytea[], published json,
    OUT first bigint, OUT seen text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    count integer := coalesce(json_array_length(published), 0);
    num integer;
    r record;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE active_sql_transaction USING MESSAGE = 'a commit needs the isolation level READ COMMITTED';
    END IF;
    PERFORM set_config('holdfast.tenant', named, true), set_config('lock_timeout', patience, true),
        set_config('idle_in_transaction_session_timeout', idle, true),
        CASE WHEN current_setting('transaction_timeout', true) <> '' THEN set_config('transaction_timeout', longest, true) END,
        CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END;

    IF count > 0 THEN
        UPDATE tenants SET feed = feed + count WHERE name = named RETURNING tenants.num, feed - count + 1 INTO num, first;
    ELSIF serial THEN
        SELECT t.num, t.feed + 1 INTO num, first FROM tenants t WHERE t.name = named FOR NO KEY UPDATE;
    ELSE
        SELECT t.num, t.feed + 1 INTO num, first FROM tenants t WHERE t.name = named FOR KEY SHARE;
    END IF;
    IF NOT FOUND THEN
        INSERT INTO tenants AS t (name, feed) VALUES (named, count) ON CONFLICT (name) DO UPDATE SET feed = t.feed + count
            RETURNING t.num, t.feed - count + 1 INTO num, first;
    END IF;

    IF read IS NOT NULL AND EXISTS (
        SELECT FROM json_to_recordset(read) AS n(kind text, id text, seen xid)
        WHERE (SELECT xmin FROM records WHERE tenant = num AND kind = n.kind AND id = n.id) IS DISTINCT FROM n.seen
    ) OR tombs IS NOT NULL AND EXISTS (
        SELECT FROM graves WHERE tenant = num AND grave = ANY (tombs)
    ) OR places IS NOT NULL AND EXISTS (
        SELECT FROM json_to_recordset(places) AS p(stream bigint, upto bigint)
        WHERE (SELECT stream FROM strands WHERE tenant = num AND stream = p.stream) IS NULL OR p.upto > 0
            AND (SELECT position FROM events WHERE tenant = num AND stream = p.stream AND position = p.upto) IS NULL
    ) OR serial AND (
        SELECT count(*) FROM limits WHERE tenant = num
    ) <> coalesce(json_array_length(grown), 0) THEN
        RAISE serialization_failure;
    END IF;

    IF grown IS NOT NULL THEN
        FOR r IN SELECT * FROM json_to_recordset(grown) AS g(measure text, kind text, most bigint, more bigint) LOOP
            IF r.more = 0 THEN
                PERFORM FROM limits WHERE tenant = num AND measure = r.measure AND kind = r.kind;
            ELSE
                UPDATE limits SET used = used + r.more WHERE tenant = num AND measure = r.measure AND kind = r.kind
                    AND most = r.most AND (r.more < 0 OR used + r.more <= most);
            END IF;
            IF NOT FOUND THEN
                RAISE serialization_failure;
            END IF;
        END LOOP;
    END IF;

    FOR r IN SELECT * FROM json_to_recordset(moved)
        AS m(kind text, id text, head bigint, digest bytea, "time" bigint, seen xid)
    LOOP
        UPDATE records SET head = r.head, digest = r.digest, time = r.time
            WHERE tenant = num AND kind = r.kind AND id = r.id AND xmin = r.seen;
        IF NOT FOUND THEN
            RAISE serialization_failure;
        END IF;
    END LOOP;

    IF wrote IS NOT NULL THEN
        FOR r IN SELECT * FROM ROWS FROM (
            json_to_recordset(wrote) AS (
                kind text, id text, version bigint, scope_user text, scope_agent text, scope_thread text, created bigint,
                "time" bigint, expires bigint, tags text, stream bigint, base bigint, head bigint, digest bytea,
                derived boolean, hour bigint, "off" text[], "on" text[], seen xid
            ), unnest(bodies)
        ) AS w(kind, id, version, scope_user, scope_agent, scope_thread, created, "time", expires, tags, stream, base, head,
            digest, derived, hour, "off", "on", seen, body)
        LOOP
            IF r.seen IS NULL THEN
                INSERT INTO records (tenant, kind, id, version, scope_user, scope_agent, scope_thread, created, time, expires,
                        tags, body, stream, base, head, digest, derived, hour)
                    VALUES (num, r.kind, r.id, r.version, r.scope_user, r.scope_agent, r.scope_thread, r.created, r.time,
                        r.expires, r.tags, r.body, r.stream, r.base, r.head, r.digest, r.derived, r.hour);
            ELSIF r.body IS NULL THEN
                DELETE FROM records WHERE tenant = num AND kind = r.kind AND id = r.id AND xmin = r.seen;
            ELSE
                UPDATE records SET version = r.version, scope_user = r.scope_user, scope_agent = r.scope_agent,
                        scope_thread = r.scope_thread, created = r.created, time = r.time, expires = r.expires, tags = r.tags,
                        body = r.body, stream = r.stream, base = r.base, head = r.head, digest = r.digest, derived = r.derived,
                        hour = r.hour
                    WHERE tenant = num AND kind = r.kind AND id = r.id AND xmin = r.seen;
            END IF;
            IF NOT FOUND THEN
                RAISE serialization_failure;
            END IF;
            IF r."off" IS NOT NULL THEN
                DELETE FROM tags WHERE tenant = num AND kind = r.kind AND tag = ANY (r."off") AND id = r.id;
            END IF;
            IF r."on" IS NOT NULL THEN
                INSERT INTO tags (tenant, kind, tag, id) SELECT num, r.kind, tag, r.id FROM unnest(r."on") AS tag;
            END IF;
        END LOOP;
    END IF;

    IF begun IS NOT NULL THEN
        INSERT INTO strands (tenant, stream, kind, id, parent, base, digest)
            SELECT num, stream, kind, id, parent, base, digest FROM json_populate_recordset(NULL::strands, begun);
    END IF;
    IF added IS NOT NULL THEN
        INSERT INTO events (tenant, stream, position, kind, key, time, digest, body)
            SELECT num, stream, position, kind, key, time, digest, body FROM ROWS FROM (
                json_to_recordset(added) AS (stream bigint, position bigint, kind text, key text, "time" bigint, digest bytea),
                unnest(contents)
            ) AS e(stream, position, kind, key, "time", digest, body);
    END IF;
    IF count > 0 THEN
        INSERT INTO feed (tenant, position, time, actor, scope_user, scope_agent, scope_thread, changes)
            SELECT num, first + at - 1, time, actor, scope_user, scope_agent, scope_thread, changes FROM ROWS FROM (
                json_to_recordset(published) AS (
                    "time" bigint, actor text, scope_user text, scope_agent text, scope_thread text, changes text
                )
            ) WITH ORDINALITY AS f("time", actor, scope_user, scope_agent, scope_thread, changes, at);
    END IF;
    seen := pg_current_xact_id()::xid::text;
END
$$;

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
