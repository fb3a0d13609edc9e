package onboarding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/id"
	"prxm.uz/proxima/internal/console/onboarding/gate"
)

// How often the open attempts are judged without anybody looking, and for how long one replica
// keeps that duty.
const (
	evaluateEvery = 30 * time.Second
	leaseFor      = 75 * time.Second
	leaseName     = "onboarding-evaluation"
)

// writeWithin bounds the caching of a verdict, and the question whether anything can be stored.
const writeWithin = 2 * time.Second

// Status measures an attempt now. What is stored of earlier verdicts has no part in it.
func (s *Service) Status(ctx context.Context, p access.Principal, attemptID string) (Status, error) {
	if _, err := s.attempt(ctx, p, attemptID, access.HostsRead); err != nil {
		return Status{}, err
	}
	status, err := s.measure(ctx, attemptID)
	if errors.Is(err, ErrNotFound) {
		return Status{}, unknownAttempt(attemptID)
	}
	if err != nil {
		return Status{}, err
	}
	if changed(status) && status.Attempt.ArchivedAt.IsZero() { // what an archived attempt came to stays
		// The cache serves list rows; that it could not be written takes nothing from this answer.
		if err := s.put(ctx, &status, time.Time{}); err != nil {
			s.Logger.WarnContext(ctx, "the verdict was not cached", "onboarding", attemptID, "error", err)
		}
	}
	return status, nil
}

// changed tells whether list rows would show another verdict. Only that makes a reader write: an open page measures
// every two seconds, and most of its measurements say the same.
func changed(st Status) bool {
	cached := st.Attempt.LastStatus
	return cached == nil || *cached != summarize(st.Inventory)
}

func (s *Service) measure(ctx context.Context, attemptID string) (Status, error) {
	rows, err := s.Store.Rows(ctx, attemptID)
	if err != nil {
		return Status{}, fmt.Errorf("read the facts of attempt %s: %w", attemptID, err)
	}
	for fact, err := range map[string]error{
		"tokens": rows.Unread.Tokens, "collectors": rows.Unread.Collectors, "others": rows.Unread.Others, "findings": rows.Unread.Findings, "cluster": rows.Unread.Cluster,
	} {
		if err != nil {
			s.Logger.ErrorContext(ctx, "a fact of an attempt could not be read", "onboarding", attemptID, "fact", fact, "error", err)
		}
	}
	now := s.Clock.Now()
	found := facts(rows, s.SyncInterval, now)
	status := Status{Attempt: rows.Attempt, CheckedAt: now, Tokens: rows.Tokens, Inventory: gate.Inventory(found, now)}
	if silent(status.Inventory) && status.Attempt.ArchivedAt.IsZero() {
		if err := s.storable(ctx); err != nil && ctx.Err() == nil {
			s.Logger.ErrorContext(ctx, "nothing can be stored, so the silence of an agent is not held against it", "onboarding", attemptID, "error", err)
			found.Unstored = whyUnstored
			status.Inventory = gate.Inventory(found, now)
		}
	}
	if rows.Cluster != nil {
		status.ClusterID = rows.Cluster.ID
	}
	return status, nil
}

// summarize makes the line of a list out of a track.
func summarize(t gate.Track) Summary {
	var sum Summary
	for _, g := range t.Gates {
		switch g.State {
		case gate.Passed:
			sum.Passed++
		case gate.Waiting:
			sum.Waiting++
		case gate.Blocked:
			sum.Blocked++
		case gate.Warning:
			sum.Warning++
		case gate.Failed:
			sum.Failed++
		}
		if sum.Gate == "" && g.State != gate.Passed {
			sum.Gate, sum.State = g.Title, string(g.State)
		}
	}
	return sum
}

// Run judges the open attempts every 30 s on one replica, caches the verdicts, and stamps those whose
// inventory is proved. It returns when ctx ends.
func (s *Service) Run(ctx context.Context) {
	holder := id.New("eva")
	ticker := s.Clock.NewTicker(evaluateEvery)
	defer ticker.Stop()
	for {
		if err := s.evaluate(ctx, holder); err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "open attempts were not all judged", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// evaluate is one round. An attempt that fails does not hold up the others.
func (s *Service) evaluate(ctx context.Context, holder string) error {
	now := s.Clock.Now()
	mine, err := s.Store.Lease(ctx, leaseName, holder, now, now.Add(leaseFor))
	if err != nil || !mine {
		return err
	}
	ids, err := s.Store.Open(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, attemptID := range ids {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		status, err := s.measure(ctx, attemptID)
		if err == nil {
			err = s.cache(ctx, status)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

func (s *Service) cache(ctx context.Context, st Status) error {
	var doneAt time.Time
	if st.Inventory.Done && st.Attempt.InventoryDoneAt.IsZero() {
		doneAt = st.CheckedAt
		s.Logger.InfoContext(ctx, "inventory proved", "onboarding", st.Attempt.ID, "slug", st.Attempt.Slug)
	}
	if doneAt.IsZero() && !changed(st) && st.CheckedAt.Sub(st.Attempt.LastCheckedAt) < evaluateEvery {
		return nil
	}
	return s.put(ctx, &st, doneAt)
}

// put caches the verdict, and does not wait for long: verdicts are read while the database takes no writes.
func (s *Service) put(ctx context.Context, st *Status, doneAt time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	sum := summarize(st.Inventory)
	if err := s.Store.PutStatus(ctx, st.Attempt.ID, sum, st.CheckedAt, doneAt); err != nil {
		return err
	}
	st.Attempt.LastStatus, st.Attempt.LastCheckedAt = &sum, st.CheckedAt
	return nil
}

// storable is nil while the database takes writes. The store itself sees to it that asking writes seldom.
func (s *Service) storable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	return s.Store.Ready(ctx)
}

// silent tells whether a verdict rests on what did not arrive: then it matters whether it could be stored.
func silent(t gate.Track) bool {
	return slices.ContainsFunc(t.Gates, func(g gate.Gate) bool {
		return (g.ID == "heartbeat" || g.ID == "sync") && (g.State == gate.Failed || g.State == gate.Warning)
	})
}
