package dev.gantry.core.internal.store;

import java.nio.file.Path;

/// The kernel's descriptors of an open file, for transports that need one.
///
/// @param buffered the descriptor that goes through the page cache
/// @param direct the one that goes past it, or -1
/// @param directAbsence why there is none
public record Descriptors(Path file, int buffered, int direct, String directAbsence) {}
