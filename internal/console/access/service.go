package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sort"
	"strconv"
	"strings"
	"time"

	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/problem"
)

// Failed sign-ins are counted over AttemptWindow. Where a limit is reached, the next one is refused without
// looking at the password, and is not counted. The counts live in the store, so that all replicas share them,
// and many tries at once count no further than one after the other.
const (
	AttemptWindow = 15 * time.Minute
	// AttemptsPerAccount is of one address for one account. It locks out those who share the address, and
	// nobody elsewhere.
	AttemptsPerAccount = 10
	// AttemptsPerAddress is of one address for all accounts.
	AttemptsPerAddress = 50
	// AttemptsFromAnywhere is of all addresses for one account: who guesses from many gets no further than
	// 20,000 guesses a day. Reaching it, which takes 20 addresses, locks the owner out for the window.
	AttemptsFromAnywhere = 200
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
	limits := limitsOf(email, AddressKey(remoteAddr))
	for _, l := range limits { // so that one who is refused again and again writes nothing
		if err := s.throttle(ctx, l, now); err != nil {
			return Principal{}, err
		}
	}
	// Counted before the password is looked at: a volley of requests cannot outrun the count.
	full, err := s.store.RecordAttempt(ctx, limits, now.Add(-AttemptWindow), now)
	if err != nil {
		return Principal{}, fmt.Errorf("record a sign-in: %w", err)
	}
	if full != nil {
		return Principal{}, s.tooMany(ctx, *full, now)
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
		s.logger.InfoContext(ctx, "sign-in refused", "remote_addr", remoteAddr)
		if err := s.auditFailure(ctx, a, remoteAddr, now); err != nil {
			return Principal{}, err
		}
		return Principal{}, errSignIn()
	}
	if err := s.store.ClearAttempts(ctx, []string{limits[0].Key, limits[1].Key}, limits[2].Key, now); err != nil {
		return Principal{}, fmt.Errorf("clear the count of sign-ins: %w", err)
	}
	p, err := s.Principal(ctx, a.UserID)
	if p.RemoteAddr = remoteAddr; err != nil {
		return p, err
	}
	return p, s.audit(ctx, p.Did(now, audit.SignedIn).On("user", p.UserID, p.Email))
}

// auditFailure leaves at most one event for each account and window, and one for all accounts that do not
// exist: what was typed for their address may be a password.
func (s *Service) auditFailure(ctx context.Context, a Account, remoteAddr string, now time.Time) error {
	name := a.Email
	if name == "" {
		name = "an account that does not exist"
	}
	e := audit.System(now, audit.SignInFailed).On("user", a.UserID, a.Email).With("account", name).
		With("window", strconv.Itoa(int(AttemptWindow/time.Minute)))
	e.RemoteAddr = remoteAddr
	err := s.store.InTx(ctx, func(tx Tx) error {
		told, err := tx.AuditedSince(ctx, e.Action, e.ResourceType, e.ResourceID, now.Add(-AttemptWindow))
		if err != nil || told {
			return err
		}
		return tx.AppendAudit(ctx, e)
	})
	if err != nil {
		return fmt.Errorf("record a failed sign-in: %w", err)
	}
	return nil
}

// SignedOut leaves the event of a sign-out.
func (s *Service) SignedOut(ctx context.Context, p Principal) error {
	return s.audit(ctx, p.Did(s.clock.Now(), audit.SignedOut).On("user", p.UserID, p.Email))
}

func (s *Service) audit(ctx context.Context, e audit.Event) error {
	if err := s.store.InTx(ctx, func(tx Tx) error { return tx.AppendAudit(ctx, e) }); err != nil {
		return fmt.Errorf("record the event %s: %w", e.Action, err)
	}
	return nil
}

// limitsOf lists the two of the account, which a success ends, and then the one of the address.
func limitsOf(email, address string) []AttemptLimit {
	return []AttemptLimit{
		{"account " + email + " from " + address, AttemptsPerAccount},
		{"account " + email, AttemptsFromAnywhere},
		{"address " + address, AttemptsPerAddress},
	}
}

// throttle answers TooMany where the limit is reached. Where the count cannot be read, nobody may guess.
func (s *Service) throttle(ctx context.Context, l AttemptLimit, now time.Time) error {
	n, err := s.store.CountAttempts(ctx, l.Key, now.Add(-AttemptWindow))
	if err != nil {
		return fmt.Errorf("count sign-ins: %w", err)
	}
	if n < l.Most {
		return nil
	}
	return s.tooMany(ctx, l, now)
}

// tooMany says when the count will be below its limit.
func (s *Service) tooMany(ctx context.Context, l AttemptLimit, now time.Time) error {
	var failed error
	minutes := int(AttemptWindow / time.Minute)
	wait := 1 + sort.Search(minutes-1, func(i int) bool {
		n, err := s.store.CountAttempts(ctx, l.Key, now.Add(-AttemptWindow+time.Duration(i+1)*time.Minute))
		failed = errors.Join(failed, err)
		return n < l.Most
	})
	if failed != nil {
		return fmt.Errorf("count sign-ins: %w", failed)
	}
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

// Forget forgets sessions that ended and sign-ins that count no more; call it now and then.
func (s *Service) Forget(ctx context.Context) error {
	now := s.clock.Now()
	return errors.Join(s.store.DeleteExpiredSessions(ctx, now), s.store.ForgetAttempts(ctx, now.Add(-AttemptWindow)))
}
