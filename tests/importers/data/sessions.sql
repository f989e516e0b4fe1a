BEGIN TRANSACTION;
CREATE TABLE agent_messages (
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                session_id TEXT NOT NULL,
                message_data TEXT NOT NULL,
                created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
                FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id)
                    ON DELETE CASCADE
            );
INSERT INTO "agent_messages" VALUES(1,'trip-42','{"role": "user", "content": "Book me a flight to Porto \u2708\ufe0f"}','2026-11-15 19:52:33');
INSERT INTO "agent_messages" VALUES(2,'trip-42','{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "needs a date"}]}','2026-11-15 19:52:33');
INSERT INTO "agent_messages" VALUES(3,'trip-42','{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "find_flights", "arguments": "{\"to\": \"OPO\"}", "status": "completed"}','2026-11-15 19:52:33');
INSERT INTO "agent_messages" VALUES(4,'trip-42','{"type": "function_call_output", "call_id": "call_1", "output": "TP 1234, 09:40"}','2026-11-15 19:52:33');
INSERT INTO "agent_messages" VALUES(5,'trip-42','{"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": [{"type": "output_text", "text": "There is one at 09:40.", "annotations": []}]}','2026-11-15 19:52:33');
INSERT INTO "agent_messages" VALUES(6,'trip-42','{"type": "item_reference", "id": "msg_0"}','2026-11-15 19:52:33');
INSERT INTO "agent_messages" VALUES(7,'żółw','{"role": "user", "content": "hello \u0000 there"}','2026-11-15 19:52:33');
INSERT INTO "agent_messages" VALUES(8,'trip-42','{"role": "user", "content": "Take it."}','2026-11-15 19:52:33');
CREATE TABLE agent_sessions (
                session_id TEXT PRIMARY KEY,
                created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
                updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
            );
INSERT INTO "agent_sessions" VALUES('trip-42','2026-11-15 19:52:33','2026-11-15 19:52:33');
INSERT INTO "agent_sessions" VALUES('żółw','2026-11-15 19:52:33','2026-11-15 19:52:33');
CREATE INDEX idx_agent_messages_session_id
            ON agent_messages (session_id, id)
        ;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('agent_messages',8);
COMMIT;
