-- The SQL of both services, and of the seeder: what one runs, the other runs.
-- A block begins with its name and ends where the next one begins.

-- name: schema
CREATE TABLE users (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL UNIQUE,
  bio TEXT,
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%S', 'now'))
);

-- name: seed-user
INSERT INTO users (id, name, email, bio, created_at) VALUES (?1, ?2, ?3, ?4, ?5)

-- Durable: every COMMIT waits until the log is on the disk.
-- name: writer-settings
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 4000;
PRAGMA busy_timeout = 5000;
PRAGMA cache_size = -16384;
PRAGMA temp_store = MEMORY;

-- name: reader-settings
PRAGMA query_only = ON;
PRAGMA cache_size = -16384;
PRAGMA mmap_size = 67108864;

-- What every connection of the naive services gets, each time it is opened. The
-- time-out first: the other statement may find the database locked already.
-- name: naive-settings
PRAGMA busy_timeout = 5000;
PRAGMA journal_mode = WAL;

-- name: user-by-id
SELECT id, name, email, bio, created_at FROM users WHERE id = ?1

-- name: users-page
SELECT id, name, email, bio, created_at FROM users ORDER BY id LIMIT ?1 OFFSET ?2

-- name: insert-user
INSERT INTO users (name, email, bio) VALUES (?1, ?2, ?3) RETURNING id, name, email, bio, created_at

-- name: update-user
UPDATE users SET name = ?2, email = ?3, bio = ?4 WHERE id = ?1 RETURNING id, name, email, bio, created_at

-- name: delete-user
DELETE FROM users WHERE id = ?1 RETURNING id

-- name: begin
BEGIN IMMEDIATE

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: savepoint
SAVEPOINT request

-- name: release
RELEASE request

-- name: rollback-to
ROLLBACK TO request
