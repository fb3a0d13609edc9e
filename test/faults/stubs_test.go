package faults

func replicaRows() []row    { return nil }
func identityRows() []row   { return nil }
func kubernetesRows() []row { return nil }
func consoleRows() []row    { return nil }
