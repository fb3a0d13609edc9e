package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sort"
	"strings"
	"time"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/problem"
)

// Failed sign-ins are counted over AttemptWindow; the next one is then refused without looking at the
// password. The counts live in the store, so that all replicas share them.
const (
	AttemptWindow      = 15 * time.Minute
	AttemptsPerAccount = 10
	AttemptsPerAddress = 50
)

// Service turns credentials into principals. It may be used from several goroutines.
type Service struct {
	store  Store
	hasher *Hasher
	clock  clock.Clock
	logger *slog.Logger
}

// New makes a Service.
func New(store Store, hasher *Hasher, c clock.Clock, logger *slog.Logger) *Service {
	return &Service{store: store, hasher: hasher, clock: c, logger: logger}
}

func errSignIn() error {
	return problem.New(problem.Unauthenticated, "sign_in_failed", "E-mail address or password is wrong.").
		WithCure("Check both; an administrator can set a new password.")
}

// SignIn checks an e-mail address and a password. Unknown and deactivated users, and wrong passwords,
// get one and the same answer after the same work. Too many failures answer TooMany.
func (s *Service) SignIn(ctx context.Context, email, password, remoteAddr string) (Principal, error) {
	now := s.clock.Now()
	email = strings.ToLower(strings.TrimSpace(email))
	if len(email) > 254 {
		return Principal{}, errSignIn()
	}
	account, address := "account "+email, "address "+AddressKey(remoteAddr)
	if err := s.throttle(ctx, account, AttemptsPerAccount, now); err != nil {
		return Principal{}, err
	}
	if err := s.throttle(ctx, address, AttemptsPerAddress, now); err != nil {
		return Principal{}, err
	}
	// Counted before the password is looked at: a volley of requests cannot outrun the count.
	if err := s.store.RecordAttempt(ctx, account, now, now.Add(-AttemptWindow)); err != nil {
		return Principal{}, fmt.Errorf("record a sign-in: %w", err)
	}
	if n, err := s.store.CountAttempts(ctx, account, now.Add(-AttemptWindow)); err != nil {
		return Principal{}, fmt.Errorf("count sign-ins: %w", err)
	} else if n > AttemptsPerAccount {
		return Principal{}, s.throttle(ctx, account, AttemptsPerAccount, now)
	}
	a, err := s.store.AccountByEmail(ctx, email)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Principal{}, fmt.Errorf("find the account: %w", err)
	}
	match, err := s.hasher.Matches(ctx, password, a.PasswordHash)
	if err != nil {
		return Principal{}, err
	}
	if !match || !a.Active {
		if err := s.store.RecordAttempt(ctx, address, now, now.Add(-AttemptWindow)); err != nil {
			return Principal{}, fmt.Errorf("record a sign-in: %w", err)
		}
		s.logger.InfoContext(ctx, "sign-in refused", "remote_addr", remoteAddr)
		return Principal{}, errSignIn()
	}
	if err := s.store.ClearAttempts(ctx, account); err != nil {
		return Principal{}, fmt.Errorf("clear the count of sign-ins: %w", err)
	}
	p, err := s.Principal(ctx, a.UserID)
	p.RemoteAddr = remoteAddr
	return p, err
}

// throttle answers TooMany where the key has reached its limit, with the seconds to wait.
func (s *Service) throttle(ctx context.Context, key string, limit int, now time.Time) error {
	count := func(since time.Time) int {
		n, err := s.store.CountAttempts(ctx, key, since)
		if err != nil {
			s.logger.ErrorContext(ctx, "cannot count sign-ins", "error", err)
			return limit // refuse rather than let anybody guess
		}
		return n
	}
	if count(now.Add(-AttemptWindow)) < limit {
		return nil
	}
	minutes := int(AttemptWindow / time.Minute)
	wait := 1 + sort.Search(minutes-1, func(i int) bool {
		return count(now.Add(-AttemptWindow+time.Duration(i+1)*time.Minute)) < limit
	})
	e := problem.New(problem.TooMany, "too_many_attempts", "There were too many failed sign-ins.").
		WithCure(fmt.Sprintf("Wait %d minutes and try again.", wait))
	e.RetryAfterSeconds = wait * 60
	return e
}

// AddressKey names a caller for rate limits: an address without its port; IPv6 addresses are grouped
// by their /64, which one host owns whole.
func AddressKey(remoteAddr string) string {
	if ap, err := netip.ParseAddrPort(remoteAddr); err == nil {
		remoteAddr = ap.Addr().String()
	}
	a, err := netip.ParseAddr(remoteAddr)
	if err != nil {
		return remoteAddr
	}
	if a = a.Unmap(); a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}

// Principal reads who a user is now. A user that is gone or deactivated is Unauthenticated.
func (s *Service) Principal(ctx context.Context, userID string) (Principal, error) {
	if userID == "" {
		return Principal{}, ErrUnauthenticated()
	}
	a, err := s.store.Account(ctx, userID)
	switch {
	case errors.Is(err, ErrNotFound):
		return Principal{}, ErrUnauthenticated()
	case err != nil:
		return Principal{}, fmt.Errorf("read account %s: %w", userID, err)
	case !a.Active:
		return Principal{}, problem.New(problem.Unauthenticated, "account_deactivated", "This account is deactivated.").
			WithCure("Ask an administrator to activate it.")
	}
	grants, err := s.store.Grants(ctx, userID)
	if err != nil {
		return Principal{}, fmt.Errorf("read the grants of %s: %w", userID, err)
	}
	return Principal{UserID: a.UserID, Email: a.Email, Name: a.Name, Grants: grants}, nil
}

// DeleteExpiredSessions forgets sessions that ended; call it now and then.
func (s *Service) DeleteExpiredSessions(ctx context.Context) error {
	return s.store.DeleteExpiredSessions(ctx, s.clock.Now())
}
