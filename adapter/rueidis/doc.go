// Package rueidis makes Redlatch clients from a rueidis client of one server or a cluster, or from
// the options of a rueidis client of Sentinels:
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
