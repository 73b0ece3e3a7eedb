package compat

var rwMutants, rwUnmeant []mutant
