package dev.gantry.formats.tfrecord.index;

import dev.gantry.core.Cancellation;
import dev.gantry.core.MisuseException;
import dev.gantry.core.ProgressListener;
import java.util.List;

/// How an index is built.
///
/// @param features names of those to index; empty for all
/// @param progress hears how many of the file's bytes have been read
/// @param cancellation ends it early; nothing is written then
public record IndexOptions(
    List<String> features, ProgressListener progress, Cancellation cancellation) {
  /// The most integers of a record's feature that an index holds.
  public static final int MOST_VALUES = 64;

  /// The most features of one file.
  public static final int MOST_FEATURES = 4096;

  /// The longest name of a feature, in bytes of UTF-8.
  public static final int MOST_NAME_BYTES = 4096;

  public IndexOptions {
    features = features.stream().distinct().toList();
    MisuseException.requireRange("number of features", features.size(), 0, MOST_FEATURES);
  }

  /// All features; a new cancellation each time.
  public static IndexOptions defaults() {
    return new IndexOptions(List.of(), (_, _) -> {}, new Cancellation());
  }

  public IndexOptions withFeatures(List<String> chosen) {
    return new IndexOptions(chosen, progress, cancellation);
  }

  public IndexOptions withProgress(ProgressListener chosen) {
    return new IndexOptions(features, chosen, cancellation);
  }

  public IndexOptions withCancellation(Cancellation chosen) {
    return new IndexOptions(features, progress, chosen);
  }
}
