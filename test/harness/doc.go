// Package harness starts the real programs that tests, the demo and the
// benchmarks run against, and ends them without a trace: a Kubernetes control
// plane with simulated nodes, PostgreSQL, a NATS server, and the product's own
// programs.
//
// Its parts are nouns with verbs: [StartControlPlane] returns a [ControlPlane]
// to which nodes are added, [StartPostgres] a [Postgres] that hands out
// databases, [StartConsole] a [Console] whose gates can be awaited. None of it
// needs package testing; [New] wraps the same verbs for a test, which fails where
// a verb fails and cleans up at its end.
//
// Three rules hold for all of it. Nothing sleeps: every wait ends on readiness,
// on the early exit of the process waited for (the error then carries the end
// of its log), or on a deadline. Ports and directories are reserved under a lock,
// so that any number of test processes run side by side. A child never outlives
// its parent: the kernel ends it when the parent dies in whatever way.
//
// The programs are built once, from the modules under test/controlplane, into
// the user's cache directory: see [Binaries].
package harness
