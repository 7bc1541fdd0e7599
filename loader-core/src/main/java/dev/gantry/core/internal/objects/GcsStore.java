// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import dev.gantry.core.internal.http.HttpStore;
import dev.gantry.core.internal.store.Variables;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Objects of Google Cloud Storage, as `gs://BUCKET/KEY`.
public final class GcsStore extends ObjectStore {
  /// Makes the store for [java.util.ServiceLoader].
  public GcsStore() {
    this(Variables::ofProcess);
  }

  GcsStore(Function<String, @Nullable String> variables) {
    super("gs", variables);
  }

  @Override
  ObjectService service(Function<String, @Nullable String> settings, HttpStore client) {
    return new GcsService(settings, client);
  }
}
