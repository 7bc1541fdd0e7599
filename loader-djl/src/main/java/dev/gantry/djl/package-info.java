/// DJL's face of Gantry: checkpoints as NDArrays that own their memory, without a copy.
@NullMarked
package dev.gantry.djl;

import org.jspecify.annotations.NullMarked;
