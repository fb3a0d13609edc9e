package access

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/problem"
)

// Sessions lists where p is signed in, the session seen last first.
func (s *Service) Sessions(ctx context.Context, p Principal) ([]Session, error) {
	if p.UserID == "" {
		return nil, ErrUnauthenticated()
	}
	sessions, err := s.store.Sessions(ctx, p.UserID, s.clock.Now())
	if err != nil {
		return nil, fmt.Errorf("list the sessions of %s: %w", p.UserID, err)
	}
	return sessions, nil
}

// EndSession signs p out in one browser at once.
func (s *Service) EndSession(ctx context.Context, p Principal, sessionID string) error {
	if p.UserID == "" {
		return ErrUnauthenticated()
	}
	now := s.clock.Now()
	err := s.store.InTx(ctx, func(tx Tx) error {
		if err := tx.DeleteSessionOfUser(ctx, p.UserID, sessionID); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, p.Did(now, audit.SessionEnded).On("user", p.UserID, p.Email).With("session", sessionID))
	})
	if errors.Is(err, ErrNotFound) {
		return problem.New(problem.NotFound, "not_found", "You have no session "+sessionID+".").
			WithCure("List your sessions and take the id from there; it may have ended by itself.")
	}
	if err != nil {
		return fmt.Errorf("end session %s: %w", sessionID, err)
	}
	return nil
}

// EndOtherSessions signs p out everywhere but in the session keep, and counts the sessions that ended.
func (s *Service) EndOtherSessions(ctx context.Context, p Principal, keep string) (ended int, err error) {
	if p.UserID == "" {
		return 0, ErrUnauthenticated()
	}
	now := s.clock.Now()
	err = s.store.InTx(ctx, func(tx Tx) error {
		ended = 0
		sessions, err := tx.Sessions(ctx, p.UserID, now)
		if err != nil {
			return err
		}
		for _, one := range sessions {
			if one.ID == keep {
				continue
			}
			if err := tx.DeleteSessionOfUser(ctx, p.UserID, one.ID); err != nil {
				return err
			}
			ended++
		}
		if ended == 0 {
			return nil
		}
		return tx.AppendAudit(ctx, p.Did(now, audit.OtherSessionsEnded).On("user", p.UserID, p.Email).With("sessions", strconv.Itoa(ended)))
	})
	if err != nil {
		return 0, fmt.Errorf("end the other sessions of %s: %w", p.UserID, err)
	}
	return ended, nil
}
