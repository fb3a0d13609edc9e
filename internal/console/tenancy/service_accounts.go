package tenancy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/id"
	"prxm.uz/proxima/internal/console/problem"
)

// serviceAccountAddress stands where a person has an e-mail address: in the audit log, and to keep the names
// of service accounts apart. It is not an address, so that no person can have it.
func serviceAccountAddress(name string) string { return "service account " + name }

// CreateServiceAccount adds an account for a program, without a role, a password or a token.
func (s *Service) CreateServiceAccount(ctx context.Context, p access.Principal, name string) (User, error) {
	if err := p.Require(access.UsersWrite, access.Scope{}, "console"); err != nil {
		return User{}, err
	}
	if err := access.CheckName("name", name, maxUserName); err != nil {
		return User{}, err
	}
	now := s.clock.Now()
	u := User{
		ID: id.New("usr"), Kind: KindServiceAccount, Email: serviceAccountAddress(name), Name: name, Active: true, CreatedAt: now, UpdatedAt: now,
	}
	err := s.store.InTx(ctx, func(tx Tx) error {
		if err := tx.InsertUser(ctx, u); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, p.Did(now, audit.UserCreated).On("user", u.ID, u.Email))
	})
	return u, answer(err, fmt.Sprintf("service account named %q", name), "name")
}

// MintAPIToken makes an API token of a service account; an expiresIn of zero means no end. The plain value is
// in this answer alone, and whoever holds it may do what the account may: so p must hold all of that.
func (s *Service) MintAPIToken(ctx context.Context, p access.Principal, userID, name string, expiresIn time.Duration) (t access.APIToken, plain string, err error) {
	if err := p.Require(access.UsersWrite, access.Scope{}, "console"); err != nil {
		return access.APIToken{}, "", err
	}
	err = s.store.InTx(ctx, func(tx Tx) error {
		u, err := tx.User(ctx, userID)
		switch {
		case err != nil:
			return err
		case u.Kind != KindServiceAccount:
			return problem.New(problem.Unprocessable, "tokens_of_a_person", u.Email+" is a person, and each person mints their own API tokens.").
				WithCure("Have them mint one under Profile, or add a service account for the program.")
		case !u.Active:
			return problem.New(problem.Conflict, "account_deactivated", "The account is deactivated, so that no API token of it would work.").
				WithCure("Activate the account first.")
		}
		if err := requireAbove(ctx, tx, p, userID); err != nil {
			return err
		}
		t, plain, err = access.IssueAPIToken(ctx, tx, p, access.Account{UserID: u.ID, Email: u.Email}, name, expiresIn, s.clock.Now())
		if errors.Is(err, access.ErrNotFound) {
			return ErrNotFound
		}
		return err
	})
	if err != nil {
		return access.APIToken{}, "", answer(err, "user "+userID, "email")
	}
	return t, plain, nil
}

func noPassword() error {
	return problem.New(problem.Unprocessable, "no_password", "A service account has no password: it acts by API tokens alone.").
		WithCure("Mint an API token of it.").InField("password")
}
