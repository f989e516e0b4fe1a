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
INSERT INTO "history" VALUES('12df1fed-5f28-49ed-850e-b4ffed6d9704','c7f61f69-0915-4f3c-98a0-3442eb4540d2',NULL,'Ana prefers aisle seats','ADD','2026-11-15T19:52:37.206456+00:00','2026-11-15T19:52:37.206456+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('0de3854f-e86b-4d4c-810a-e59ee1ac9a5e','f2a45897-28e7-4e72-a849-f5d4673156d7',NULL,'Ana lives in Porto','ADD','2026-11-15T19:52:37.252146+00:00','2026-11-15T19:52:37.252146+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('c633befc-8098-46be-9dd2-779dfe321c12','245b973c-d85f-4485-ae10-d8f84b6637a0',NULL,'Bo likes tea ☕ żółć','ADD','2026-11-15T19:52:37.297050+00:00','2026-11-15T19:52:37.297050+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('ded91673-b799-4e19-8625-c0ec9a771718','c959b0a1-ac98-4b1a-9c54-92de210576b1',NULL,'to be deleted','ADD','2026-11-15T19:52:37.330170+00:00','2026-11-15T19:52:37.330170+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('15c69f59-39a0-46ce-aa46-7493201d9999','f2a45897-28e7-4e72-a849-f5d4673156d7','Ana lives in Porto','Ana lives in Lisbon','UPDATE','2026-11-15T19:52:37.252146+00:00','2026-11-15T19:52:37.384576+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('e9d87d65-76bb-4bb6-8ab1-4408ab19a853','c959b0a1-ac98-4b1a-9c54-92de210576b1','to be deleted',NULL,'DELETE','2026-11-15T19:52:37.330170+00:00','2026-11-15T19:52:37.429360+00:00',1,NULL,'user');
CREATE TABLE messages (
                        id TEXT PRIMARY KEY,
                        session_scope TEXT,
                        role TEXT,
                        content TEXT,
                        name TEXT,
                        created_at DATETIME
                    );
COMMIT;
