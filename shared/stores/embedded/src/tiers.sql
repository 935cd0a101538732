-- How sure it is that a study repeats another one, from 1. Until now every mark was taken for a certain one.
ALTER TABLE mark ADD COLUMN tier INTEGER NOT NULL DEFAULT 3;
