package engine

// EngineOf returns the engine inside a *redlatch.Client. The root package sets
// it when it is initialised, so that the kinds of lock reach the engine without
// a method for it on the public Client.
var EngineOf func(client any) *Engine
