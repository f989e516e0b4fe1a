CREATE TABLE "collections" (
    id TEXT PRIMARY KEY, -- unique globally
    name TEXT NOT NULL, -- unique per database
    dimension INTEGER,
    database_id TEXT NOT NULL REFERENCES databases(id) ON DELETE CASCADE, config_json_str TEXT, schema_str TEXT,
    UNIQUE (name, database_id)
);
CREATE TABLE "segments" (
    id TEXT PRIMARY KEY,
    type TEXT NOT NULL,
    scope TEXT NOT NULL,
    collection TEXT REFERENCES collection(id) NOT NULL
);
CREATE TABLE embedding_metadata (
    id INTEGER REFERENCES embeddings(id),
    key TEXT NOT NULL,
    string_value TEXT,
    int_value INTEGER,
    float_value REAL, bool_value INTEGER,
    PRIMARY KEY (id, key)
);
CREATE TABLE embeddings (
    id INTEGER PRIMARY KEY,
    segment_id TEXT NOT NULL,
    embedding_id TEXT NOT NULL,
    seq_id BLOB NOT NULL,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    UNIQUE (segment_id, embedding_id)
);
INSERT INTO "collections" VALUES('c84fd1c6-684d-49aa-9168-be16b3ad1315','mem0',10,'00000000-0000-0000-0000-000000000000','{}','{"defaults":{"string":{"fts_index":{"enabled":false,"config":{}},"string_inverted_index":{"enabled":true,"config":{}}},"float_list":{"vector_index":{"enabled":false,"config":{"space":"l2","hnsw":{"ef_construction":100,"max_neighbors":16,"ef_search":100,"num_threads":2,"batch_size":100,"sync_threshold":1000,"resize_factor":1.2}}}},"sparse_vector":{"sparse_vector_index":{"enabled":false,"config":{"embedding_function":{"type":"unknown"},"bm25":false}}},"int":{"int_inverted_index":{"enabled":true,"config":{}}},"float":{"float_inverted_index":{"enabled":true,"config":{}}},"bool":{"bool_inverted_index":{"enabled":true,"config":{}}}},"keys":{"created_at":{"string":{"fts_index":{"enabled":false,"config":{}},"string_inverted_index":{"enabled":true,"config":{}}}},"data":{"string":{"fts_index":{"enabled":false,"config":{}},"string_inverted_index":{"enabled":true,"config":{}}}},"category":{"string":{"fts_index":{"enabled":false,"config":{}},"string_inverted_index":{"enabled":true,"config":{}}}},"hash":{"string":{"fts_index":{"enabled":false,"config":{}},"string_inverted_index":{"enabled":true,"config":{}}}},"#document":{"string":{"fts_index":{"enabled":true,"config":{}},"string_inverted_index":{"enabled":false,"config":{}}}},"run_id":{"string":{"fts_index":{"enabled":false,"config":{}},"string_inverted_index":{"enabled":true,"config":{}}}},"role":{"string":{"fts_index":{"enabled":false,"config":{}},"string_inverted_index":{"enabled":true,"config":{}}}},"agent_id":{"string":{"fts_index":{"enabled":false,"config":{}},"string_inverted_index":{"enabled":true,"config":{}}}},"user_id":{"string":{"fts_index":{"enabled":false,"config":{}},"string_inverted_index":{"enabled":true,"config":{}}}},"text_lemmatized":{"string":{"fts_index":{"enabled":false,"config":{}},"string_inverted_index":{"enabled":true,"config":{}}}},"updated_at":{"string":{"fts_index":{"enabled":false,"config":{}},"string_inverted_index":{"enabled":true,"config":{}}}},"#embedding":{"float_list":{"vector_index":{"enabled":true,"config":{"space":"l2","source_key":"#document","hnsw":{"ef_construction":100,"max_neighbors":16,"ef_search":100,"num_threads":2,"batch_size":100,"sync_threshold":1000,"resize_factor":1.2}}}}}}}');
INSERT INTO "embedding_metadata" VALUES(1,'data','Ana prefers aisle seats',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'hash','84df505fb930ec1c14013413e2f106ac',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'updated_at','2026-11-15T19:52:40.164527+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'created_at','2026-11-15T19:52:40.164527+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'role','user',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'text_lemmatized','Ana prefers aisle seats',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'category','travel',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'user_id','ana',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'updated_at','2026-11-15T19:52:40.259478+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'data','Ana lives in Lisbon',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'run_id','trip-42',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'agent_id','travel',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'hash','02ea463cde16b11ee252b27298d1f0d1',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'user_id','ana',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'text_lemmatized','Ana lives in Lisbon',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'role','user',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'created_at','2026-11-15T19:52:40.190697+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(3,'role','user',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(3,'data','Bo likes tea ☕ żółć',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(3,'created_at','2026-11-15T19:52:40.215391+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(3,'updated_at','2026-11-15T19:52:40.215391+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(3,'user_id','bo',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(3,'hash','9300f7f2fd68caaad1f6fd3a8c0721b2',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(3,'text_lemmatized','Bo likes tea ☕ żółć',NULL,NULL,NULL);
INSERT INTO "embeddings" VALUES(1,'b5527550-f904-4c9f-8062-a44c92ace92b','24f87031-84ff-4567-88f3-45168d135e53',1,'2026-11-15 19:52:40');
INSERT INTO "embeddings" VALUES(2,'b5527550-f904-4c9f-8062-a44c92ace92b','f7ab3d6b-1982-44b1-a8b8-f0ee5b172063',5,'2026-11-15 19:52:40');
INSERT INTO "embeddings" VALUES(3,'b5527550-f904-4c9f-8062-a44c92ace92b','e25b58c1-cab0-4de9-86f1-1465714edb04',3,'2026-11-15 19:52:40');
INSERT INTO "segments" VALUES('079e365f-57f0-4830-88a5-4d14dc7066c3','urn:chroma:segment/vector/hnsw-local-persisted','VECTOR','c84fd1c6-684d-49aa-9168-be16b3ad1315');
INSERT INTO "segments" VALUES('b5527550-f904-4c9f-8062-a44c92ace92b','urn:chroma:segment/metadata/sqlite','METADATA','c84fd1c6-684d-49aa-9168-be16b3ad1315');
