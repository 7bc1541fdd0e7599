/// The native libraries that move bytes, one hand-written class for each: typed methods outside,
/// method handles inside. A library or symbol that is not there is an [Availability.Absent] with
/// its reason, found once; a call that fails throws with the code of the layer that refused.
///
/// cuFile's classes are [CuFile] (driver, handles, buffers, reads and writes), [CuFileParameters]
/// and [CuFileStatistics]. Its stream and batch calls are to become two more of that kind, each
/// resolved by its own symbols over the same [NativeLibrary].
@NullMarked
package dev.gantry.core.internal.natives;

import org.jspecify.annotations.NullMarked;
