PRAGMA application_id = 1413566284;
BEGIN TRANSACTION;
CREATE TABLE artifact (
      run_id TEXT NOT NULL,
      ref TEXT NOT NULL,
      form TEXT NOT NULL,
      body TEXT NOT NULL,
      PRIMARY KEY (run_id, ref)
    );
CREATE TABLE event (
      run_id TEXT NOT NULL,
      seq INTEGER NOT NULL,
      at REAL NOT NULL,
      kind TEXT NOT NULL,
      fence INTEGER NOT NULL,
      body TEXT NOT NULL, link BLOB NOT NULL DEFAULT x'',
      PRIMARY KEY (run_id, seq)
    );
INSERT INTO "event" VALUES('r1',0,864000.0,'run_started',1,'{"task":"查一下 \"花拉\" 的发票","agent":{"name":"desk","model":"offline","dialect":"native","strategy":"react","language":"en","instructions":"","tools":[],"limits":{"max_steps":6,"max_tool_calls":null,"max_tokens":null,"max_cost_usd":null,"max_wall_s":null,"max_working_s":null,"max_consecutive_errors":3,"max_total_errors":null,"repeat_tell":3,"repeat_stop":5},"prompts":{"language":"en","texts":{}},"policy":{"profile":"supervised","rules":[],"pin":"auto","observations":"shown","trusted_tools":[],"trusted_fields":{},"allowed_hosts":[],"approval_timeout_s":null},"approved_tiers":[],"closing_turn":true,"repair_turns":1,"temperature":null,"top_p":null,"max_output_tokens":null,"context_tokens":null,"model_timeout_s":120.0,"early_reads":false,"keep_thinking":false,"takes_cut_answers":false,"source":null,"workspace":null,"memory":null,"tools_from":[],"output_schema":null},"nonce":"n0","history":[],"parent":null,"depth":0,"after":null,"tainted":false,"trusted":[],"forked_from":null,"forked_at":null,"undoes":null,"labels":{"key":"billing"},"version":1}',X'38EEADEC362F9F459DB9D55E95A2CC57E0729F3A04FF4D86E8A2D3C245E8A5C5');
INSERT INTO "event" VALUES('r1',1,864001.0,'model_replied',1,'{"step":1,"purpose":"decide","text":"t","decision":null,"tool_calls":[],"finish_reason":null,"model":"m","usage":{"input_tokens":9,"output_tokens":1,"cached_tokens":0},"cost_usd":0.5,"latency_s":0.0,"thinking":""}',X'CFEEE166620F0E00417253BB98024245467CF87B47C20C9CC09DF8C2670484DF');
INSERT INTO "event" VALUES('r1',2,864002.0,'finished',1,'{"status":"completed","answer":"It is paid.","reason":"answered","limit":null,"citations":[],"error":""}',X'582C7B94C4A2A88FF6158D67E4EA98F66ABCA7165496D80D1177D0D0998ABED1');
INSERT INTO "event" VALUES('r1.1',0,864000.0,'run_started',1,'{"task":"inner","agent":{"name":"desk","model":"offline","dialect":"native","strategy":"react","language":"en","instructions":"","tools":[],"limits":{"max_steps":6,"max_tool_calls":null,"max_tokens":null,"max_cost_usd":null,"max_wall_s":null,"max_working_s":null,"max_consecutive_errors":3,"max_total_errors":null,"repeat_tell":3,"repeat_stop":5},"prompts":{"language":"en","texts":{}},"policy":{"profile":"supervised","rules":[],"pin":"auto","observations":"shown","trusted_tools":[],"trusted_fields":{},"allowed_hosts":[],"approval_timeout_s":null},"approved_tiers":[],"closing_turn":true,"repair_turns":1,"temperature":null,"top_p":null,"max_output_tokens":null,"context_tokens":null,"model_timeout_s":120.0,"early_reads":false,"keep_thinking":false,"takes_cut_answers":false,"source":null,"workspace":null,"memory":null,"tools_from":[],"output_schema":null},"nonce":"n0","history":[],"parent":"r1","depth":1,"after":null,"tainted":false,"trusted":[],"forked_from":null,"forked_at":null,"undoes":null,"labels":{},"version":1}',X'DCED25FE219399BC67E643D7090A3E80F1D7C5E31ABE17C6C91BF8FC58F65EC7');
INSERT INTO "event" VALUES('r1.1',1,864001.0,'model_replied',1,'{"step":1,"purpose":"decide","text":"t","decision":null,"tool_calls":[],"finish_reason":null,"model":"m","usage":{"input_tokens":9,"output_tokens":1,"cached_tokens":0},"cost_usd":0.5,"latency_s":0.0,"thinking":""}',X'E10686B51A2D63AD8619220527C139BCFA93FCCC2D47A887383B337FF54159C4');
INSERT INTO "event" VALUES('r1.1',2,864002.0,'finished',1,'{"status":"stopped","answer":null,"reason":"asked","limit":null,"citations":[],"error":""}',X'417EC1CEFE1BE53A8C8AFBDFC4884C931DE3379568B12C24A8E11F174846321B');
INSERT INTO "event" VALUES('r2',0,950400.0,'run_started',1,'{"task":"wait","agent":{"name":"desk","model":"offline","dialect":"native","strategy":"react","language":"en","instructions":"","tools":[],"limits":{"max_steps":6,"max_tool_calls":null,"max_tokens":null,"max_cost_usd":null,"max_wall_s":null,"max_working_s":null,"max_consecutive_errors":3,"max_total_errors":null,"repeat_tell":3,"repeat_stop":5},"prompts":{"language":"en","texts":{}},"policy":{"profile":"supervised","rules":[],"pin":"auto","observations":"shown","trusted_tools":[],"trusted_fields":{},"allowed_hosts":[],"approval_timeout_s":null},"approved_tiers":[],"closing_turn":true,"repair_turns":1,"temperature":null,"top_p":null,"max_output_tokens":null,"context_tokens":null,"model_timeout_s":120.0,"early_reads":false,"keep_thinking":false,"takes_cut_answers":false,"source":null,"workspace":null,"memory":null,"tools_from":[],"output_schema":null},"nonce":"n0","history":[],"parent":null,"depth":0,"after":null,"tainted":false,"trusted":[],"forked_from":null,"forked_at":null,"undoes":null,"labels":{},"version":1}',X'BD41478D476AEC80C7631D98ABAD80DB17C0A16C98C3F970C434F608E066DA3D');
INSERT INTO "event" VALUES('r2',1,950401.0,'paused',1,'{"reason":"approval","waiting_for":[],"status":"waiting","tiers":[]}',X'B64F2363FF3497639C71B31BE2AA312DD20344E610E8CAB9DAC97C1313FFB2C5');
CREATE TABLE run (
      number INTEGER PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      status TEXT NOT NULL,
      fence INTEGER NOT NULL,
      task TEXT NOT NULL,
      agent TEXT NOT NULL,
      started_at REAL NOT NULL
    , head BLOB NOT NULL DEFAULT x'', sealed_later INTEGER NOT NULL DEFAULT 0, holder TEXT NOT NULL DEFAULT '');
INSERT INTO "run" VALUES(1,'r1','completed',1,'查一下 "花拉" 的发票','desk',864000.0,X'582C7B94C4A2A88FF6158D67E4EA98F66ABCA7165496D80D1177D0D0998ABED1',0,'');
INSERT INTO "run" VALUES(2,'r1.1','stopped',1,'inner','desk',864000.0,X'417EC1CEFE1BE53A8C8AFBDFC4884C931DE3379568B12C24A8E11F174846321B',0,'');
INSERT INTO "run" VALUES(3,'r2','waiting',1,'wait','desk',950400.0,X'B64F2363FF3497639C71B31BE2AA312DD20344E610E8CAB9DAC97C1313FFB2C5',0,'');
CREATE TABLE run_log (
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      run_id TEXT NOT NULL,
      first BLOB NOT NULL,
      sealed_later INTEGER NOT NULL,
      link BLOB NOT NULL
    , pruned TEXT);
INSERT INTO "run_log" VALUES(1,'r1',X'38EEADEC362F9F459DB9D55E95A2CC57E0729F3A04FF4D86E8A2D3C245E8A5C5',0,X'B42D8A4BA0FBBB389AFCD0341319DAD196FA1EDE0EEA7ED3B4871C0F54D920FA',NULL);
INSERT INTO "run_log" VALUES(2,'r1.1',X'DCED25FE219399BC67E643D7090A3E80F1D7C5E31ABE17C6C91BF8FC58F65EC7',0,X'570DDE4BE0C76C00EA0B5ABDD2A235493F99EB7CBC008E8D97CEF2C2AB06BD06',NULL);
INSERT INTO "run_log" VALUES(3,'r2',X'BD41478D476AEC80C7631D98ABAD80DB17C0A16C98C3F970C434F608E066DA3D',0,X'04DB1A7057F7D0D63B1CD9BE5760BBF4348DB23975D484DCF397A5FD0AF11286',NULL);
CREATE INDEX run_by_status ON run (status, number);
CREATE VIEW run_overview AS
    SELECT number, id, task, agent, status, started_at,
      coalesce((SELECT at FROM event WHERE run_id = run.id ORDER BY seq DESC LIMIT 1), started_at) AS updated_at,
      coalesce((SELECT max(seq) + 1 FROM event WHERE run_id = run.id), 0) AS events
    FROM run;
CREATE INDEX run_pruned ON run_log (run_id) WHERE pruned IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('run_log',3);
COMMIT;
PRAGMA user_version = 5;
