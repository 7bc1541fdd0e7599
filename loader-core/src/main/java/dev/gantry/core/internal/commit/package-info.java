/// Files that are whole or not there: aligned writes, trim, fsync, rename, fsync of the directory.
@NullMarked
package dev.gantry.core.internal.commit;

import org.jspecify.annotations.NullMarked;
