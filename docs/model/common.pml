/* Included by the models. -DBUG=n selects a mutation, which must violate the property that runs.txt names. */
#ifndef BUG
#define BUG 0
#endif
#define MIN(a, b) ((a) < (b) -> (a) : (b))
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define WHEN(cond, steps) if :: cond -> steps :: else fi
/* A property is a variable that is always 0, so that a failed assertion contains the name. */
#define CHECK(property, cond) assert((cond) || property)

hidden byte i;	/* hidden: used only within a step */
