/// The paths by which bytes travel from files to slabs, chosen per file by evidence.
@NullMarked
package dev.gantry.core.internal.transport;

import org.jspecify.annotations.NullMarked;
