/// How memory becomes a PyTorch array: libtorch's C entry points, and arrays that no call can make
/// end the JVM.
///
/// Not for users of Gantry; it changes without notice.
@NullMarked
package dev.gantry.djl.internal;

import org.jspecify.annotations.NullMarked;
