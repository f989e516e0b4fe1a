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
INSERT INTO "history" VALUES('7fb03449-b3b7-434e-8c17-83052f2fdbb1','24f87031-84ff-4567-88f3-45168d135e53',NULL,'Ana prefers aisle seats','ADD','2026-11-15T19:52:40.164527+00:00','2026-11-15T19:52:40.164527+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('cf9751fc-c9f8-4771-948c-61023e5ac13e','f7ab3d6b-1982-44b1-a8b8-f0ee5b172063',NULL,'Ana lives in Porto','ADD','2026-11-15T19:52:40.190697+00:00','2026-11-15T19:52:40.190697+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('44d49dcf-9438-4e67-a535-48453fb4ef56','e25b58c1-cab0-4de9-86f1-1465714edb04',NULL,'Bo likes tea ☕ żółć','ADD','2026-11-15T19:52:40.215391+00:00','2026-11-15T19:52:40.215391+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('ea5652d5-be7c-4933-b3b9-a192b20dbf91','b5c8d357-01d0-4184-a52b-fdb24e613ceb',NULL,'to be deleted','ADD','2026-11-15T19:52:40.227459+00:00','2026-11-15T19:52:40.227459+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('691c1224-b63b-4ac6-8466-6595b16a1ee2','f7ab3d6b-1982-44b1-a8b8-f0ee5b172063','Ana lives in Porto','Ana lives in Lisbon','UPDATE','2026-11-15T19:52:40.190697+00:00','2026-11-15T19:52:40.259478+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('a3c59348-d3d7-431e-9b06-f942b5cb290f','b5c8d357-01d0-4184-a52b-fdb24e613ceb','to be deleted',NULL,'DELETE','2026-11-15T19:52:40.227459+00:00','2026-11-15T19:52:40.293397+00:00',1,NULL,'user');
CREATE TABLE messages (
                        id TEXT PRIMARY KEY,
                        session_scope TEXT,
                        role TEXT,
                        content TEXT,
                        name TEXT,
                        created_at DATETIME
                    );
COMMIT;
