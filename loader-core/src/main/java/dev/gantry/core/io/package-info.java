/// The paths by which bytes travel from files to slabs, chosen per file by evidence.
@NullMarked
package dev.gantry.core.io;

import org.jspecify.annotations.NullMarked;
