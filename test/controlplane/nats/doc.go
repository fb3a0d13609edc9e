// Package nats pins the stand-alone NATS server for the tests that run console
// against an external NATS. It holds no code; test/harness builds the tool. Its
// version must be the one that the product embeds, which a test there checks.
package nats
