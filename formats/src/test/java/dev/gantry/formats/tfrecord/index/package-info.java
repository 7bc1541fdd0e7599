@NullMarked
package dev.gantry.formats.tfrecord.index;

import org.jspecify.annotations.NullMarked;
