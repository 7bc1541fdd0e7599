/// The session, and the words of GantrySession: what bytes are wanted, where they go, and what can go wrong
/// on the way.
@NullMarked
package dev.gantry.core;

import org.jspecify.annotations.NullMarked;
