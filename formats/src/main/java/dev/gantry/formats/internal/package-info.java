/// What the formats share: a file's bytes in order, and strict JSON over them.
@NullMarked
package dev.gantry.formats.internal;

import org.jspecify.annotations.NullMarked;
