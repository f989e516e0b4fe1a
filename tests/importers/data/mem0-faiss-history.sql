BEGIN TRANSACTION;
CREATE TABLE history (
                        id           TEXT PRIMARY KEY,
                        memory_id    TEXT,
                        old_memory   TEXT,
                        new_memory   TEXT,
                        event        TEXT,
                        created_at   DATETIME,
                        updated_at   DATETIME,
                        is_deleted   INTEGER,
                        actor_id     TEXT,
                        role         TEXT
                    );
INSERT INTO "history" VALUES('a3912142-f364-4c7e-9e3b-97f4e3d20a5f','c2b5eaba-952d-4d15-b10a-0606d462ae52',NULL,'Ana prefers aisle seats','ADD','2026-11-15T19:52:40.577236+00:00','2026-11-15T19:52:40.577236+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('99fd499a-35d3-449d-95eb-49499a88bffc','0403b6c0-76b6-4eb0-89df-92890514788c',NULL,'Ana lives in Porto','ADD','2026-11-15T19:52:40.601229+00:00','2026-11-15T19:52:40.601229+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('af4db87c-115d-44b5-acef-5a694b62b555','4f73723d-f2ed-4e4d-8b3a-7b1825a8d7eb',NULL,'Bo likes tea ☕ żółć','ADD','2026-11-15T19:52:40.629478+00:00','2026-11-15T19:52:40.629478+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('47cc7ea4-03b5-4eeb-b25a-7522ecb16ce2','e85c4c4a-eb9b-4c78-acf1-fa88c4c4d502',NULL,'to be deleted','ADD','2026-11-15T19:52:40.649110+00:00','2026-11-15T19:52:40.649110+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('db8d8615-0326-429b-a6ed-59e69d1c4be6','0403b6c0-76b6-4eb0-89df-92890514788c','Ana lives in Porto','Ana lives in Lisbon','UPDATE','2026-11-15T19:52:40.601229+00:00','2026-11-15T19:52:40.661861+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('52883063-5721-4c88-bd13-1fe27c744cf4','e85c4c4a-eb9b-4c78-acf1-fa88c4c4d502','to be deleted',NULL,'DELETE','2026-11-15T19:52:40.649110+00:00','2026-11-15T19:52:40.681013+00:00',1,NULL,'user');
CREATE TABLE messages (
                        id TEXT PRIMARY KEY,
                        session_scope TEXT,
                        role TEXT,
                        content TEXT,
                        name TEXT,
                        created_at DATETIME
                    );
COMMIT;
