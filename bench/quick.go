package main

func runQuick([]string) error { return errUsage }
