package dev.gantry.formats.tfrecord.index;

import dev.gantry.formats.Field;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.tfrecord.FeatureKind;

/// A field and the feature of its name.
///
/// @param elements of each record
record StoredField(Field field, FeatureKind kind, long elements, FieldSource source) {}
