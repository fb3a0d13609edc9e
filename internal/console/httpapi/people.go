package httpapi

import (
	"context"
	"time"

	api "prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/tenancy"
)

// server has a method for each operation: translate, one domain call, render.
type server struct{ Config }

var _ api.StrictServerInterface = (*server)(nil)

func who(ctx context.Context) access.Principal { return callerOf(ctx).who }

// GetSession implements the operation getSession.
func (s *server) GetSession(ctx context.Context, _ api.GetSessionRequestObject) (api.GetSessionResponseObject, error) {
	return api.GetSession200JSONResponse(session(who(ctx))), nil
}

// ChangePassword implements the operation changePassword. It ends every session, and signs the one
// that asked in again.
func (s *server) ChangePassword(ctx context.Context, r api.ChangePasswordRequestObject) (api.ChangePasswordResponseObject, error) {
	p := who(ctx)
	if err := s.Tenancy.ChangePassword(ctx, p, r.Body.CurrentPassword, r.Body.NewPassword); err != nil {
		return nil, err
	}
	if p.APITokenID == "" {
		if err := s.Sessions.SignIn(ctx, p.UserID); err != nil {
			return nil, err
		}
	}
	return api.ChangePassword204Response{}, nil
}

// ListAPITokens implements the operation listAPITokens.
func (s *server) ListAPITokens(ctx context.Context, _ api.ListAPITokensRequestObject) (api.ListAPITokensResponseObject, error) {
	tokens, err := s.Access.APITokens(ctx, who(ctx))
	if err != nil {
		return nil, err
	}
	return api.ListAPITokens200JSONResponse{Items: each(tokens, apiToken)}, nil
}

// days is the lifetime that a body asks for; zero where it asks for none.
func days(asked *int) time.Duration { return time.Duration(given(asked)) * 24 * time.Hour }

// CreateAPIToken implements the operation createAPIToken.
func (s *server) CreateAPIToken(ctx context.Context, r api.CreateAPITokenRequestObject) (api.CreateAPITokenResponseObject, error) {
	t, plain, err := s.Access.MintAPIToken(ctx, who(ctx), r.Body.Name, days(r.Body.ExpiresInDays))
	if err != nil {
		return nil, err
	}
	return api.CreateAPIToken201JSONResponse{Token: plain, APIToken: apiToken(t)}, nil
}

// RevokeAPIToken implements the operation revokeAPIToken.
func (s *server) RevokeAPIToken(ctx context.Context, r api.RevokeAPITokenRequestObject) (api.RevokeAPITokenResponseObject, error) {
	return api.RevokeAPIToken204Response{}, s.Access.RevokeAPIToken(ctx, who(ctx), r.APITokenID)
}

// ListSessions implements the operation listSessions.
func (s *server) ListSessions(ctx context.Context, _ api.ListSessionsRequestObject) (api.ListSessionsResponseObject, error) {
	sessions, err := s.Access.Sessions(ctx, who(ctx))
	if err != nil {
		return nil, err
	}
	current := s.Sessions.ID(ctx)
	return api.ListSessions200JSONResponse{Items: each(sessions, func(one access.Session) api.SignedIn {
		return api.SignedIn{
			ID: one.ID, CreatedAt: one.CreatedAt.UTC(), SeenAt: one.SeenAt.UTC(), ExpiresAt: one.ExpiresAt.UTC(),
			RemoteAddr: one.RemoteAddr, UserAgent: one.UserAgent, Current: one.ID == current,
		}
	})}, nil
}

// EndOtherSessions implements the operation endOtherSessions.
func (s *server) EndOtherSessions(ctx context.Context, _ api.EndOtherSessionsRequestObject) (api.EndOtherSessionsResponseObject, error) {
	ended, err := s.Access.EndOtherSessions(ctx, who(ctx), s.Sessions.ID(ctx))
	if err != nil {
		return nil, err
	}
	return api.EndOtherSessions200JSONResponse{Ended: ended}, nil
}

// EndSession implements the operation endSession.
func (s *server) EndSession(ctx context.Context, r api.EndSessionRequestObject) (api.EndSessionResponseObject, error) {
	return api.EndSession204Response{}, s.Access.EndSession(ctx, who(ctx), r.SessionID)
}

// ListClients implements the operation listClients.
func (s *server) ListClients(ctx context.Context, _ api.ListClientsRequestObject) (api.ListClientsResponseObject, error) {
	clients, err := s.Tenancy.Clients(ctx, who(ctx))
	if err != nil {
		return nil, err
	}
	return api.ListClients200JSONResponse{Items: each(clients, client)}, nil
}

// CreateClient implements the operation createClient.
func (s *server) CreateClient(ctx context.Context, r api.CreateClientRequestObject) (api.CreateClientResponseObject, error) {
	c, err := s.Tenancy.CreateClient(ctx, who(ctx), r.Body.Name)
	if err != nil {
		return nil, err
	}
	return api.CreateClient201JSONResponse(client(c)), nil
}

// GetClient implements the operation getClient.
func (s *server) GetClient(ctx context.Context, r api.GetClientRequestObject) (api.GetClientResponseObject, error) {
	c, err := s.Tenancy.Client(ctx, who(ctx), r.ClientID)
	if err != nil {
		return nil, err
	}
	return api.GetClient200JSONResponse(client(c)), nil
}

// UpdateClient implements the operation updateClient.
func (s *server) UpdateClient(ctx context.Context, r api.UpdateClientRequestObject) (api.UpdateClientResponseObject, error) {
	c, err := s.Tenancy.RenameClient(ctx, who(ctx), r.ClientID, r.Body.Name)
	if err != nil {
		return nil, err
	}
	return api.UpdateClient200JSONResponse(client(c)), nil
}

// DeleteClient implements the operation deleteClient.
func (s *server) DeleteClient(ctx context.Context, r api.DeleteClientRequestObject) (api.DeleteClientResponseObject, error) {
	return api.DeleteClient204Response{}, s.Tenancy.DeleteClient(ctx, who(ctx), r.ClientID)
}

// ListEnvironments implements the operation listEnvironments.
func (s *server) ListEnvironments(ctx context.Context, r api.ListEnvironmentsRequestObject) (api.ListEnvironmentsResponseObject, error) {
	environments, err := s.Tenancy.Environments(ctx, who(ctx), r.ClientID)
	if err != nil {
		return nil, err
	}
	return api.ListEnvironments200JSONResponse{Items: each(environments, environment)}, nil
}

// CreateEnvironment implements the operation createEnvironment.
func (s *server) CreateEnvironment(ctx context.Context, r api.CreateEnvironmentRequestObject) (api.CreateEnvironmentResponseObject, error) {
	e, err := s.Tenancy.CreateEnvironment(ctx, who(ctx), r.ClientID, r.Body.Name)
	if err != nil {
		return nil, err
	}
	return api.CreateEnvironment201JSONResponse(environment(e)), nil
}

// UpdateEnvironment implements the operation updateEnvironment.
func (s *server) UpdateEnvironment(ctx context.Context, r api.UpdateEnvironmentRequestObject) (api.UpdateEnvironmentResponseObject, error) {
	e, err := s.Tenancy.RenameEnvironment(ctx, who(ctx), r.EnvironmentID, r.Body.Name)
	if err != nil {
		return nil, err
	}
	return api.UpdateEnvironment200JSONResponse(environment(e)), nil
}

// DeleteEnvironment implements the operation deleteEnvironment.
func (s *server) DeleteEnvironment(ctx context.Context, r api.DeleteEnvironmentRequestObject) (api.DeleteEnvironmentResponseObject, error) {
	return api.DeleteEnvironment204Response{}, s.Tenancy.DeleteEnvironment(ctx, who(ctx), r.EnvironmentID)
}

// ListUsers implements the operation listUsers.
func (s *server) ListUsers(ctx context.Context, r api.ListUsersRequestObject) (api.ListUsersResponseObject, error) {
	users, total, err := s.Tenancy.Users(ctx, who(ctx), tenancy.UserQuery{
		Text: given(r.Params.Q), Kind: tenancy.UserKind(given(r.Params.Kind)), RoleID: given(r.Params.RoleID), Active: r.Params.Active, Limit: limit(r.Params.Limit), Offset: given(r.Params.Offset),
	})
	if err != nil {
		return nil, err
	}
	items := each(users, func(m tenancy.Member) api.User { return user(m.User, m.Assignments) })
	return api.ListUsers200JSONResponse{Items: items, Total: total}, nil
}

// CreateUser implements the operation createUser.
func (s *server) CreateUser(ctx context.Context, r api.CreateUserRequestObject) (api.CreateUserResponseObject, error) {
	u, err := s.Tenancy.CreateUser(ctx, who(ctx), r.Body.Email, r.Body.Name, r.Body.Password)
	if err != nil {
		return nil, err
	}
	return api.CreateUser201JSONResponse(user(u, nil)), nil
}

// GetUser implements the operation getUser.
func (s *server) GetUser(ctx context.Context, r api.GetUserRequestObject) (api.GetUserResponseObject, error) {
	u, assignments, err := s.Tenancy.User(ctx, who(ctx), r.UserID)
	if err != nil {
		return nil, err
	}
	return api.GetUser200JSONResponse(user(u, assignments)), nil
}

// UpdateUser implements the operation updateUser.
func (s *server) UpdateUser(ctx context.Context, r api.UpdateUserRequestObject) (api.UpdateUserResponseObject, error) {
	patch := tenancy.UserPatch{Name: r.Body.Name, Active: r.Body.Active, Password: r.Body.Password}
	u, err := s.Tenancy.UpdateUser(ctx, who(ctx), r.UserID, patch)
	if err != nil {
		return nil, err
	}
	assignments, err := s.Tenancy.Assignments(ctx, who(ctx), r.UserID)
	if err != nil {
		return nil, err
	}
	return api.UpdateUser200JSONResponse(user(u, assignments)), nil
}

// ListUserAPITokens implements the operation listUserAPITokens.
func (s *server) ListUserAPITokens(ctx context.Context, r api.ListUserAPITokensRequestObject) (api.ListUserAPITokensResponseObject, error) {
	tokens, err := s.Tenancy.APITokens(ctx, who(ctx), r.UserID)
	if err != nil {
		return nil, err
	}
	return api.ListUserAPITokens200JSONResponse{Items: each(tokens, apiToken)}, nil
}

// CreateServiceAccount implements the operation createServiceAccount.
func (s *server) CreateServiceAccount(ctx context.Context, r api.CreateServiceAccountRequestObject) (api.CreateServiceAccountResponseObject, error) {
	u, err := s.Tenancy.CreateServiceAccount(ctx, who(ctx), r.Body.Name)
	if err != nil {
		return nil, err
	}
	return api.CreateServiceAccount201JSONResponse(user(u, nil)), nil
}

// CreateUserAPIToken implements the operation createUserAPIToken.
func (s *server) CreateUserAPIToken(ctx context.Context, r api.CreateUserAPITokenRequestObject) (api.CreateUserAPITokenResponseObject, error) {
	t, plain, err := s.Tenancy.MintAPIToken(ctx, who(ctx), r.UserID, r.Body.Name, days(r.Body.ExpiresInDays))
	if err != nil {
		return nil, err
	}
	return api.CreateUserAPIToken201JSONResponse{Token: plain, APIToken: apiToken(t)}, nil
}

// RevokeUserAPIToken implements the operation revokeUserAPIToken.
func (s *server) RevokeUserAPIToken(ctx context.Context, r api.RevokeUserAPITokenRequestObject) (api.RevokeUserAPITokenResponseObject, error) {
	return api.RevokeUserAPIToken204Response{}, s.Tenancy.RevokeAPIToken(ctx, who(ctx), r.UserID, r.APITokenID)
}

// AssignRole implements the operation assignRole.
func (s *server) AssignRole(ctx context.Context, r api.AssignRoleRequestObject) (api.AssignRoleResponseObject, error) {
	scope := access.Scope{ClientID: given(r.Body.ClientID), EnvironmentID: given(r.Body.EnvironmentID)}
	a, err := s.Tenancy.Assign(ctx, who(ctx), r.UserID, r.Body.RoleID, scope)
	if err != nil {
		return nil, err
	}
	return api.AssignRole201JSONResponse(assignment(a)), nil
}

// UnassignRole implements the operation unassignRole.
func (s *server) UnassignRole(ctx context.Context, r api.UnassignRoleRequestObject) (api.UnassignRoleResponseObject, error) {
	return api.UnassignRole204Response{}, s.Tenancy.Unassign(ctx, who(ctx), r.UserID, r.AssignmentID)
}

// ListRoles implements the operation listRoles.
func (s *server) ListRoles(ctx context.Context, _ api.ListRolesRequestObject) (api.ListRolesResponseObject, error) {
	roles, err := s.Tenancy.Roles(ctx, who(ctx))
	if err != nil {
		return nil, err
	}
	return api.ListRoles200JSONResponse{Items: each(roles, role)}, nil
}

func permissions(names []string) []access.Permission {
	return each(names, func(n string) access.Permission { return access.Permission(n) })
}

// CreateRole implements the operation createRole.
func (s *server) CreateRole(ctx context.Context, r api.CreateRoleRequestObject) (api.CreateRoleResponseObject, error) {
	made, err := s.Tenancy.CreateRole(ctx, who(ctx), r.Body.Name, permissions(r.Body.Permissions))
	if err != nil {
		return nil, err
	}
	return api.CreateRole201JSONResponse(role(made)), nil
}

// GetRole implements the operation getRole.
func (s *server) GetRole(ctx context.Context, r api.GetRoleRequestObject) (api.GetRoleResponseObject, error) {
	found, err := s.Tenancy.Role(ctx, who(ctx), r.RoleID)
	if err != nil {
		return nil, err
	}
	return api.GetRole200JSONResponse(role(found)), nil
}

// UpdateRole implements the operation updateRole.
func (s *server) UpdateRole(ctx context.Context, r api.UpdateRoleRequestObject) (api.UpdateRoleResponseObject, error) {
	changed, err := s.Tenancy.UpdateRole(ctx, who(ctx), r.RoleID, "", r.Body.Name, permissions(r.Body.Permissions))
	if err != nil {
		return nil, err
	}
	return api.UpdateRole200JSONResponse(role(changed)), nil
}

// DeleteRole implements the operation deleteRole.
func (s *server) DeleteRole(ctx context.Context, r api.DeleteRoleRequestObject) (api.DeleteRoleResponseObject, error) {
	return api.DeleteRole204Response{}, s.Tenancy.DeleteRole(ctx, who(ctx), r.RoleID)
}
