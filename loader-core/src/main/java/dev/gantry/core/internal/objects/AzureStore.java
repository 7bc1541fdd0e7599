// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.objects;

import dev.gantry.core.internal.http.HttpStore;
import dev.gantry.core.internal.store.Variables;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Blobs of an account of Azure Blob Storage, as `az://CONTAINER/NAME`.
public final class AzureStore extends ObjectStore {
  /// Makes the store for [java.util.ServiceLoader].
  public AzureStore() {
    this(Variables::ofProcess);
  }

  AzureStore(Function<String, @Nullable String> variables) {
    super("az", variables);
  }

  @Override
  ObjectService service(Function<String, @Nullable String> settings, HttpStore client) {
    return AzureService.of(settings);
  }
}
