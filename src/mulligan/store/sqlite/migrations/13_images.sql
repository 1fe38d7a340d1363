-- the bytes of images, once, however often records and requests show them; `shown`: by which episodes
CREATE TABLE images (sha256 TEXT NOT NULL UNIQUE, content BLOB NOT NULL);
CREATE TABLE shown (
    episode INTEGER NOT NULL REFERENCES episodes,
    sha256 TEXT NOT NULL REFERENCES images (sha256),
    PRIMARY KEY (episode, sha256)
);
CREATE INDEX shown_by_image ON shown (sha256);
