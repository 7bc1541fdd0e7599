// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Location;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.core.spi.WritableStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.model.MultipartUpload;

/// What a store writes, and what it finds for that.
final class S3Uploads {
  private final S3Clients clients;
  private final S3AsyncClient client;

  /// @param client for all but the files' bytes
  S3Uploads(S3Clients clients, S3AsyncClient client) {
    this.clients = clients;
    this.client = client;
  }

  /// @param folder whose key ends in a slash, or is empty
  List<WritableStore.Entry> below(Location location, S3Name folder) {
    return clients.objects(location, folder, null).stream()
        .map(object ->
            new WritableStore.Entry(object.key().substring(folder.key().length()), object.size()))
        .toList();
  }

  void upload(Path file, Location location, S3Name target) {
    long size;
    try {
      size = Files.size(file);
    } catch (IOException e) {
      throw FileErrors.of("stat", file.toString(), e);
    }
    clients.await(
        "PUT", location, () -> S3Upload.start(clients, file, size, location, clients.url(target)));
  }

  void remove(Location location, S3Name object) {
    var _ =
        clients.await(
            "DELETE",
            location,
            () -> client.deleteObject(gone -> gone.bucket(object.bucket()).key(object.key())));
  }

  /// @param folder whose key ends in a slash, or is empty
  void endUploads(Location location, S3Name folder, Predicate<String> names) {
    List<MultipartUpload> found = new ArrayList<>();
    var _ =
        clients.await(
            "LIST",
            location,
            () ->
                client
                    .listMultipartUploadsPaginator(
                        list -> list.bucket(folder.bucket()).prefix(folder.key()))
                    .uploads()
                    .subscribe(found::add));
    for (MultipartUpload upload : found) {
      if (names.test(upload.key().substring(folder.key().length()))) {
        abort(location, folder.bucket(), upload);
      }
    }
  }

  private void abort(Location location, String bucket, MultipartUpload upload) {
    var _ =
        clients.await(
            "ABORT",
            location,
            () ->
                client.abortMultipartUpload(
                    end -> end.bucket(bucket).key(upload.key()).uploadId(upload.uploadId())));
  }
}
