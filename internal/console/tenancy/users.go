package tenancy

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strconv"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/id"
	"prxm.uz/proxima/internal/console/problem"
)

// UserPatch is what may be changed of a user; nil fields stay.
type UserPatch struct {
	Name     *string
	Active   *bool
	Password *string
}

// Users reads a page of users with their roles, by e-mail address, and counts all that match.
func (s *Service) Users(ctx context.Context, p access.Principal, q UserQuery) ([]Member, int, error) {
	if err := p.Require(access.UsersRead, access.Scope{}, "console"); err != nil {
		return nil, 0, err
	}
	users, total, err := s.store.Users(ctx, q)
	if err != nil {
		return nil, 0, fmt.Errorf("list users: %w", err)
	}
	return users, total, nil
}

// User reads a user with the roles assigned.
func (s *Service) User(ctx context.Context, p access.Principal, userID string) (User, []Assignment, error) {
	if err := p.Require(access.UsersRead, access.Scope{}, "console"); err != nil {
		return User{}, nil, err
	}
	u, err := s.store.User(ctx, userID)
	if err != nil {
		return User{}, nil, answer(err, "user "+userID, "e-mail address")
	}
	assignments, err := s.store.Assignments(ctx, userID)
	return u, assignments, answer(err, "user "+userID, "e-mail address")
}

// Assignments lists the roles of a user.
func (s *Service) Assignments(ctx context.Context, p access.Principal, userID string) ([]Assignment, error) {
	if err := p.Require(access.UsersRead, access.Scope{}, "console"); err != nil {
		return nil, err
	}
	assignments, err := s.store.Assignments(ctx, userID)
	return assignments, answer(err, "user "+userID, "e-mail address")
}

func (s *Service) newUser(ctx context.Context, email, name, password string) (User, error) {
	if err := checkEmail(email); err != nil {
		return User{}, err
	}
	if err := access.CheckName("name", name, maxUserName); err != nil {
		return User{}, err
	}
	hash, err := s.hasher.Hash(ctx, password)
	if err != nil {
		return User{}, err
	}
	now := s.clock.Now()
	return User{ID: id.New("usr"), Kind: KindPerson, Email: email, Name: name, PasswordHash: hash, Active: true, CreatedAt: now, UpdatedAt: now}, nil
}

func checkEmail(email string) error {
	a, err := mail.ParseAddress(email)
	if err != nil || a.Address != email || len(email) > 254 {
		return problem.New(problem.Invalid, "email_invalid", fmt.Sprintf("%q is not an e-mail address.", email)).
			WithCure("Give an address such as ann@example.com.").InField("email")
	}
	return access.CheckName("email", email, 254)
}

// CreateUser adds a user without any role.
func (s *Service) CreateUser(ctx context.Context, p access.Principal, email, name, password string) (User, error) {
	if err := p.Require(access.UsersWrite, access.Scope{}, "console"); err != nil {
		return User{}, err
	}
	u, err := s.newUser(ctx, email, name, password)
	if err != nil {
		return User{}, err
	}
	err = s.store.InTx(ctx, func(tx Tx) error {
		if err := tx.InsertUser(ctx, u); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, p.Did(u.CreatedAt, audit.UserCreated).On("user", u.ID, u.Email))
	})
	return u, answer(err, fmt.Sprintf("user with the address %q", email), "email")
}

// Invitation is what it takes to let a colleague in; an empty RoleID gives no role yet.
type Invitation struct {
	Email  string
	Name   string
	RoleID string
	Scope  access.Scope
}

// Invite adds a user with a role and with a password that console makes. The password is in this answer
// alone. Nobody gives what they do not hold.
func (s *Service) Invite(ctx context.Context, p access.Principal, i Invitation) (User, string, error) {
	if err := p.Require(access.UsersWrite, access.Scope{}, "console"); err != nil {
		return User{}, "", err
	}
	if i.RoleID != "" {
		if err := p.Require(access.RolesWrite, access.Scope{}, "console"); err != nil {
			return User{}, "", err
		}
	}
	password := access.MakePassword()
	u, err := s.newUser(ctx, i.Email, i.Name, password)
	if err != nil {
		return User{}, "", err
	}
	err = s.store.InTx(ctx, func(tx Tx) error {
		if err := tx.InsertUser(ctx, u); err != nil {
			return err
		}
		if err := tx.AppendAudit(ctx, p.Did(u.CreatedAt, audit.UserCreated).On("user", u.ID, u.Email)); err != nil {
			return err
		}
		if i.RoleID == "" {
			return nil
		}
		_, err := assign(ctx, tx, p, u, Assignment{ID: id.New("asg"), UserID: u.ID, RoleID: i.RoleID, Scope: i.Scope, CreatedAt: u.CreatedAt})
		return err
	})
	if err != nil {
		return User{}, "", answer(err, fmt.Sprintf("user with the address %q", i.Email), "email")
	}
	return u, password, nil
}

// ResetPassword sets a password that console makes, which is in this answer alone; see [Service.UpdateUser].
func (s *Service) ResetPassword(ctx context.Context, p access.Principal, userID string) (User, string, error) {
	password := access.MakePassword()
	u, err := s.UpdateUser(ctx, p, userID, UserPatch{Password: &password})
	if err != nil {
		return User{}, "", err
	}
	return u, password, nil
}

// UpdateUser renames, deactivates or reactivates a user, or sets a new password. Who changes another's
// password or activity must hold everything that the other holds: else it would be a way up. A new
// password and a deactivation end the user's sessions and API tokens: whoever orders them means that
// nothing of before goes on. A reactivation brings no token back. The last administrator stays active.
func (s *Service) UpdateUser(ctx context.Context, p access.Principal, userID string, patch UserPatch) (User, error) {
	hash, err := s.checkPatch(ctx, p, userID, patch)
	if err != nil {
		return User{}, err
	}
	var u User
	err = s.store.InTx(ctx, func(tx Tx) (err error) {
		if u, err = tx.User(ctx, userID); err != nil {
			return err
		}
		if patch.Password != nil || patch.Active != nil {
			if err := requireAbove(ctx, tx, p, userID); err != nil {
				return err
			}
		}
		if patch.Password != nil && u.Kind == KindServiceAccount {
			return noPassword()
		}
		e := p.Did(s.clock.Now(), audit.UserUpdated)
		u.UpdatedAt = e.At
		ended := hash != ""
		if ended {
			u.PasswordHash = hash
			e = e.With("password", "changed")
		}
		if patch.Name != nil && *patch.Name != u.Name {
			e = e.With("name_before", u.Name).With("name_after", *patch.Name)
			u.Name = *patch.Name
			if u.Kind == KindServiceAccount {
				u.Email = serviceAccountAddress(u.Name)
			}
		}
		if patch.Active != nil && *patch.Active != u.Active {
			e = e.With("active_before", strconv.FormatBool(u.Active)).With("active_after", strconv.FormatBool(*patch.Active))
			u.Active, ended = *patch.Active, true
		}
		if err := tx.UpdateUser(ctx, u); err != nil {
			return err
		}
		if ended {
			n, err := endAccess(ctx, tx, userID, e.At)
			if err != nil {
				return err
			}
			e = e.With("api_tokens_revoked", strconv.Itoa(n))
		}
		if err := keepAdministrator(ctx, tx); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, e.On("user", u.ID, u.Email))
	})
	if errors.Is(err, ErrTaken) {
		return u, answer(err, fmt.Sprintf("service account named %q", u.Name), "name")
	}
	return u, answer(err, "user "+userID, "email")
}

// endAccess signs a user out everywhere, and counts the API tokens that it revoked.
func endAccess(ctx context.Context, tx Tx, userID string, at time.Time) (int, error) {
	if err := tx.DeleteSessionsOfUser(ctx, userID); err != nil {
		return 0, err
	}
	return tx.RevokeAPITokensOfUser(ctx, userID, at)
}

// APITokens lists the API tokens of another person, newest first.
func (s *Service) APITokens(ctx context.Context, p access.Principal, userID string) ([]access.APIToken, error) {
	if err := p.Require(access.UsersRead, access.Scope{}, "console"); err != nil {
		return nil, err
	}
	if _, err := s.store.User(ctx, userID); err != nil {
		return nil, answer(err, "user "+userID, "email")
	}
	tokens, err := s.store.APITokens(ctx, userID)
	return tokens, answer(err, "user "+userID, "email")
}

// RevokeAPIToken ends an API token of another person at once. Revoking twice is no error, and changes
// nothing. It gives nobody anything, so it asks for no more than users:write.
func (s *Service) RevokeAPIToken(ctx context.Context, p access.Principal, userID, tokenID string) error {
	if err := p.Require(access.UsersWrite, access.Scope{}, "console"); err != nil {
		return err
	}
	err := s.store.InTx(ctx, func(tx Tx) error {
		u, err := tx.User(ctx, userID)
		if err != nil {
			return err
		}
		err = access.EndAPIToken(ctx, tx, p, access.Account{UserID: u.ID, Email: u.Email}, tokenID, s.clock.Now())
		if errors.Is(err, access.ErrNotFound) {
			return ErrNotFound
		}
		return err
	})
	return answer(err, fmt.Sprintf("API token %s of user %s", tokenID, userID), "apiTokenID")
}

// checkPatch refuses what nobody may change, or p may not whoever the user is, and answers the hash of a new password.
func (s *Service) checkPatch(ctx context.Context, p access.Principal, userID string, patch UserPatch) (hash string, err error) {
	if err := p.Require(access.UsersWrite, access.Scope{}, "console"); err != nil {
		return "", err
	}
	if patch.Name != nil {
		if err := access.CheckName("name", *patch.Name, maxUserName); err != nil {
			return "", err
		}
	}
	if patch.Password == nil {
		return "", nil
	}
	if userID == p.UserID {
		return "", problem.New(problem.Unprocessable, "own_password", "Your own password is changed with the current one.").
			WithCure("Use the change of password of your session.").InField("password")
	}
	return s.hasher.Hash(ctx, *patch.Password)
}

// ChangePassword sets the caller's own password. It ends every session of the user: whoever calls it
// for a browser signs that one in again. API tokens stay: they are credentials of their own, programs
// hold them, and a person who changes a password now and then does not mean to stop those.
func (s *Service) ChangePassword(ctx context.Context, p access.Principal, current, next string) error {
	if p.UserID == "" {
		return access.ErrUnauthenticated()
	}
	u, err := s.store.User(ctx, p.UserID)
	if err != nil {
		return answer(err, "user "+p.UserID, "email")
	}
	if u.Kind == KindServiceAccount {
		return noPassword()
	}
	match, err := s.hasher.Matches(ctx, current, u.PasswordHash)
	if err != nil {
		return err
	}
	if !match {
		return problem.New(problem.Unprocessable, "password_wrong", "The current password is wrong.").
			WithCure("Type it again; an administrator can set a new one.").InField("currentPassword")
	}
	hash, err := s.hasher.Hash(ctx, next)
	if err != nil {
		if e, ok := problemOf(err); ok {
			return e.InField("newPassword")
		}
		return err
	}
	old := u.PasswordHash
	err = s.store.InTx(ctx, func(tx Tx) error {
		u, err := tx.User(ctx, p.UserID)
		if err != nil {
			return err
		}
		if u.PasswordHash != old {
			return problem.New(problem.Conflict, "password_changed_meanwhile", "The password was changed a moment ago.").
				WithCure("Sign in with the new one.")
		}
		u.PasswordHash, u.UpdatedAt = hash, s.clock.Now()
		if err := tx.UpdateUser(ctx, u); err != nil {
			return err
		}
		if err := tx.DeleteSessionsOfUser(ctx, u.ID); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, p.Did(u.UpdatedAt, audit.PasswordChanged).On("user", u.ID, u.Email))
	})
	return answer(err, "user "+p.UserID, "email")
}

// requireAbove refuses where the user holds a permission somewhere that p does not hold there.
func requireAbove(ctx context.Context, tx Tx, p access.Principal, userID string) error {
	if userID == p.UserID {
		return nil
	}
	assignments, err := tx.Assignments(ctx, userID)
	if err != nil {
		return answer(err, "user "+userID, "email")
	}
	for _, a := range assignments {
		role, err := tx.Role(ctx, a.RoleID)
		if err != nil {
			return answer(err, "role "+a.RoleID, "name")
		}
		if err := requireAll(p, role.Permissions, a.Scope); err != nil {
			return err
		}
	}
	return nil
}

// keepAdministrator refuses a change after which nobody could manage users any more.
func keepAdministrator(ctx context.Context, tx Tx) error {
	n, err := tx.CountAdministrators(ctx)
	if err != nil {
		return err
	}
	if n == 0 {
		return problem.New(problem.Conflict, "last_administrator", "This would leave nobody who may manage users on the whole console.").
			WithCure("Make another active user an administrator first.")
	}
	return nil
}
