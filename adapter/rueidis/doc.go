// Package rueidis creates Redlatch clients from a rueidis client for one server or a cluster, or
// from the options of a rueidis client that uses Sentinel:
//
//	rdb, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs})
//	if err != nil {
//		return err
//	}
//	client, err := latchrueidis.New(ctx, rdb)
//
// The rueidis client dials, authenticates and encrypts. Redlatch takes dedicated connections from
// it: BlockingPoolSize must leave room for four per node. No call runs twice, regardless of the
// client's retry settings. The README has the details.
package rueidis
