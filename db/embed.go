// Package db holds the migrations of console's database: one folder of goose files for SQLite and
// PostgreSQL alike, in the subset of SQL that both understand. It refuses to know how they are run;
// package store does that.
package db

import "embed"

// Migrations holds the folder migrations. Number 0010 is kept for the readiness of clusters.
//
//go:embed migrations/*.sql
var Migrations embed.FS
