package engine

import "github.com/redlatch/redlatch/internal/protocol"

// EngineOf returns the engine inside a *redlatch.Client. The root package sets
// it when it is initialised, so that the kinds of lock reach the engine without
// a method for it on the public Client.
var EngineOf func(client any) *Engine

// MakeKind makes the protocol of one kind of lock for a mapped name.
type MakeKind func(e *Engine, mapped string) protocol.Protocol

// NewLock returns a *rlock.Lock of another kind. Package rlock sets it when it is
// initialised, so that other kinds reach its loop without a public function for it.
var NewLock func(e *Engine, name string, kind MakeKind) any
