// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.internal;

import dev.gantry.core.Failure;
import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.objects.ObjectName;
import dev.gantry.core.internal.store.RetryLimits;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.auth.credentials.AwsSessionCredentials;
import software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.crt.CRT;
import software.amazon.awssdk.crt.auth.credentials.Credentials;
import software.amazon.awssdk.crt.auth.credentials.CredentialsProvider;
import software.amazon.awssdk.crt.auth.credentials.DelegateCredentialsProvider;
import software.amazon.awssdk.crt.auth.signing.AwsSigningConfig;
import software.amazon.awssdk.crt.http.HttpHeader;
import software.amazon.awssdk.crt.http.HttpMonitoringOptions;
import software.amazon.awssdk.crt.io.ClientBootstrap;
import software.amazon.awssdk.crt.io.ExponentialBackoffRetryOptions;
import software.amazon.awssdk.crt.io.StandardRetryOptions;
import software.amazon.awssdk.crt.io.TlsContext;
import software.amazon.awssdk.crt.io.TlsContextOptions;
import software.amazon.awssdk.crt.s3.S3Client;
import software.amazon.awssdk.crt.s3.S3ClientOptions;
import software.amazon.awssdk.crt.s3.S3MetaRequest;
import software.amazon.awssdk.crt.s3.S3MetaRequestOptions;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.model.HeadObjectResponse;
import software.amazon.awssdk.services.s3.model.ListMultipartUploadsResponse;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Response;
import software.amazon.awssdk.services.s3.model.ListPartsResponse;
import software.amazon.awssdk.services.s3.model.MultipartUpload;
import software.amazon.awssdk.services.s3.model.Part;
import software.amazon.awssdk.services.s3.model.RequestPayer;
import software.amazon.awssdk.services.s3.model.S3Object;
import software.amazon.awssdk.utils.SdkAutoCloseable;

/// The clients of a store. The SDK's client asks for names and sizes. The CRT's own client
/// transfers the objects, because it delivers their bytes in direct buffers, while the SDK's
/// client delivers them in arrays.
final class S3Clients implements AutoCloseable {
  /// The SDK's client has few requests, so it keeps few connections and little memory.
  private static final int CONNECTIONS_FOR_NAMES = 8;

  /// The link speed from which the CRT client computes how many connections it may open. The
  /// number that it opens depends on the requests in flight.
  private static final double FASTEST_LINE_GBPS = 100;

  private final RetryLimits limits;
  private final S3AsyncClient names;

  /// The payer of the SDK client's requests: this account; null if the bucket's owner pays.
  private final @Nullable RequestPayer payer;

  private final CredentialsProvider forSigning;
  private final AwsSigningConfig signing;
  private final TlsContext tls;
  private final S3Client bytes;

  private final AtomicBoolean released = new AtomicBoolean();

  /// The work of [#close]; made early, since a full heap must not keep the clients open.
  private final List<Runnable> closing;

  private S3Clients(S3Settings settings, AwsCredentialsProvider credentials, S3AsyncClient names) {
    this.payer = S3Settings.requesterPays() ? RequestPayer.REQUESTER : null;
    this.limits = settings.limits();
    this.names = names;
    String region = names.serviceClientConfiguration().region().id();
    this.forSigning =
        new DelegateCredentialsProvider.DelegateCredentialsProviderBuilder()
            .withHandler(() -> forSigning(credentials.resolveCredentials()))
            .build();
    this.signing = AwsSigningConfig.getDefaultS3SigningConfig(region, forSigning);
    try (TlsContextOptions options = TlsContextOptions.createDefaultClient()) {
      this.tls = new TlsContext(options);
    }
    HttpMonitoringOptions monitoring = new HttpMonitoringOptions();
    int idleSeconds = Math.toIntExact(limits.idle().toSeconds());
    monitoring.setMinThroughputBytesPerSecond(Math.max(1, RetryLimits.LEAST_BYTES / idleSeconds));
    monitoring.setAllowableThroughputFailureIntervalSeconds(idleSeconds);
    BufferPool pool = BufferPool.ofThisJvm();
    this.bytes =
        new S3Client(
            new S3ClientOptions()
                .withRegion(region)
                .withSigningConfig(signing)
                .withClientBootstrap(ClientBootstrap.getOrCreateStaticDefault())
                .withTlsContext(tls)
                .withPartSize(pool.partBytes())
                .withThroughputTargetGbps(FASTEST_LINE_GBPS)
                .withHttpMonitoringOptions(monitoring)
                .withDirectBufferPoolOptions(pool.options())
                // [S3Request] repeats attempts. The client always retries at least once, so its
                // retries are kept to the minimum.
                .withStandardRetryOptions(
                    new StandardRetryOptions()
                        .withInitialBucketCapacity(1)
                        .withBackoffRetryOptions(
                            new ExponentialBackoffRetryOptions().withMaxRetries(1))));
    this.closing =
        List.of(
            this::closeBytes,
            signing::close,
            forSigning::close,
            tls::close,
            names::close,
            () -> close(credentials),
            this::release);
  }

  /// Opens the clients. The CRT goes on until [#close], also while the JVM is ending: it would answer
  /// nothing from the JVM's first shutdown hook on, although other hooks and interrupted threads may
  /// have to save a checkpoint, to undo an upload or to close the clients, and would wait forever.
  ///
  /// @throws dev.gantry.core.TransferException if the SDK finds no region or no credentials
  static S3Clients open(S3Settings settings) {
    CRT.acquireShutdownRef();
    return Cleanup.orUndo(() -> make(settings), CRT::releaseShutdownRef);
  }

  private static S3Clients make(S3Settings settings) {
    AwsCredentialsProvider credentials =
        S3Settings.anonymous()
            ? AnonymousCredentialsProvider.create()
            : DefaultCredentialsProvider.builder().build();
    return Cleanup.orUndo(
        () -> {
          S3AsyncClient names = names(settings, credentials);
          return Cleanup.orUndo(() -> new S3Clients(settings, credentials, names), names::close);
        },
        () -> close(credentials));
  }

  private static void close(AwsCredentialsProvider credentials) {
    if (credentials instanceof SdkAutoCloseable closing) {
      closing.close();
    }
  }

  private static S3AsyncClient names(S3Settings settings, AwsCredentialsProvider credentials) {
    try {
      S3AsyncClient client = names(settings, credentials, false);
      boolean pathStyle =
          Cleanup.orUndo(
              () -> S3Settings.pathStyle(url(client, new ObjectName("bucket", "key"))),
              client::close);
      if (!pathStyle) {
        return client;
      }
      client.close();
      return names(settings, credentials, true);
    } catch (SdkException e) {
      throw S3Errors.of("open", "s3", e);
    } catch (GantryException e) {
      throw e;
    } catch (RuntimeException e) {
      throw S3Errors.ofEndpoint(e);
    }
  }

  private static S3AsyncClient names(
      S3Settings settings, AwsCredentialsProvider credentials, boolean pathStyle) {
    return S3AsyncClient.crtBuilder()
        .credentialsProvider(credentials)
        .forcePathStyle(pathStyle)
        .maxConcurrency(CONNECTIONS_FOR_NAMES)
        .retryConfiguration(retries -> retries.numRetries(settings.limits().attempts() - 1))
        // Callbacks run on the SDK's own thread, since they only complete futures.
        .futureCompletionExecutor(Runnable::run)
        .build();
  }

  private static Credentials forSigning(AwsCredentials found) {
    if (found.accessKeyId() == null) {
      return Credentials.createAnonymousCredentials();
    }
    byte @Nullable [] token =
        found instanceof AwsSessionCredentials session ? utf8(session.sessionToken()) : null;
    return new Credentials(utf8(found.accessKeyId()), utf8(found.secretAccessKey()), token);
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /// Returns the limits of one request.
  RetryLimits limits() {
    return limits;
  }

  /// Returns the headers that each request of [#begin] has in addition to its own.
  List<HttpHeader> headers() {
    return payer == null
        ? List.of()
        : List.of(new HttpHeader("x-amz-request-payer", payer.toString()));
  }

  /// Begins a download or an upload. This is refused after a close has begun, because the CRT
  /// client would use freed memory.
  ///
  /// @throws IllegalStateException if a close has begun
  S3MetaRequest begin(S3MetaRequestOptions options) {
    synchronized (bytes) {
      return bytes.makeMetaRequest(options);
    }
  }

  /// Returns the URL of an object.
  URI url(ObjectName name) {
    return url(names, name);
  }

  private static URI url(S3AsyncClient client, ObjectName name) {
    try {
      return client.utilities().getUrl(url -> url.bucket(name.bucket()).key(name.key())).toURI();
    } catch (URISyntaxException e) {
      throw new IllegalStateException("the SDK made no URI of " + name, e);
    }
  }

  HeadObjectResponse head(Location file, ObjectName name) {
    return await(
        "HEAD",
        file,
        () ->
            names.headObject(
                head -> head.bucket(name.bucket()).key(name.key()).requestPayer(payer)));
  }

  /// Returns the objects in a folder, without those in its subfolders.
  List<Location> list(Location location, ObjectName folder) {
    return objects(location, folder, "/").stream()
        .<Location>map(object -> new ObjectName(folder.bucket(), object.key()).location("s3"))
        .toList();
  }

  /// Returns the objects whose keys begin with a folder's key.
  ///
  /// @param delimiter the character that ends a folder's name, to leave out objects in subfolders;
  ///     null to include them
  List<S3Object> objects(Location location, ObjectName folder, @Nullable String delimiter) {
    S3List<ListObjectsV2Response, S3Object> objects =
        new S3List<>(
            location,
            ListObjectsV2Response::contents,
            page -> String.valueOf(page.nextContinuationToken()),
            object -> isBelow(folder, object.key()) && object.size() != null && object.size() >= 0);
    var _ =
        await(
            "LIST",
            location,
            () ->
                names
                    .listObjectsV2Paginator(list ->
                        list.bucket(folder.bucket())
                            .prefix(folder.key())
                            .delimiter(delimiter)
                            .requestPayer(payer))
                    .subscribe(objects));
    // The folder itself is left out, which some programs store as an empty object.
    return objects.found().stream().filter(object -> !object.key().equals(folder.key())).toList();
  }

  private static boolean isBelow(ObjectName folder, @Nullable String key) {
    return key != null && key.startsWith(folder.key());
  }

  void delete(Location file, ObjectName name) {
    var _ =
        await(
            "DELETE",
            file,
            () ->
                names.deleteObject(
                    gone -> gone.bucket(name.bucket()).key(name.key()).requestPayer(payer)));
  }

  /// Returns the multipart uploads below a folder that were neither completed nor aborted.
  List<MultipartUpload> begun(Location location, ObjectName folder) {
    S3List<ListMultipartUploadsResponse, MultipartUpload> uploads =
        new S3List<>(
            location,
            ListMultipartUploadsResponse::uploads,
            page -> page.nextKeyMarker() + " " + page.nextUploadIdMarker(),
            upload ->
                isBelow(folder, upload.key())
                    && upload.uploadId() != null
                    && upload.initiated() != null);
    var _ =
        await(
            "LIST",
            location,
            () ->
                names
                    .listMultipartUploadsPaginator(list ->
                        list.bucket(folder.bucket()).prefix(folder.key()).requestPayer(payer))
                    .subscribe(uploads));
    return uploads.found();
  }

  /// Returns the parts of an upload that the server has.
  List<Part> parts(Location file, ObjectName name, String uploadId) {
    S3List<ListPartsResponse, Part> parts =
        new S3List<>(
            file,
            ListPartsResponse::parts,
            page -> String.valueOf(page.nextPartNumberMarker()),
            part ->
                part.partNumber() != null
                    && part.partNumber() > 0
                    && part.size() != null
                    && part.eTag() != null);
    var _ =
        await(
            "LIST",
            file,
            () ->
                names
                    .listPartsPaginator(list ->
                        list.bucket(name.bucket())
                            .key(name.key())
                            .uploadId(uploadId)
                            .requestPayer(payer))
                    .subscribe(parts));
    return parts.found();
  }

  void abort(Location location, String bucket, String key, String uploadId) {
    var _ =
        await(
            "ABORT",
            location,
            () ->
                names.abortMultipartUpload(
                    end -> end.bucket(bucket).key(key).uploadId(uploadId).requestPayer(payer)));
  }

  /// Sends a request and waits for its answer. An interruption cancels the request.
  <T> T await(String operation, Location file, Supplier<? extends CompletableFuture<T>> asking) {
    Future<T> answer = null;
    try {
      answer = asking.get();
      return answer.get();
    } catch (InterruptedException _) {
      if (answer != null) {
        boolean _ = answer.cancel(true);
      }
      Thread.currentThread().interrupt();
      throw new TransferException(operation, file.toString(), new Failure.Cancelled());
    } catch (ExecutionException | CompletionException e) {
      throw failed(operation, file, e.getCause() == null ? e : e.getCause());
    } catch (SdkException e) {
      throw failed(operation, file, e);
    }
  }

  private TransferException failed(String operation, Location file, Throwable reason) {
    return reason instanceof SdkException sdk
        ? S3Errors.of(
            operation,
            file.toString(),
            url(new ObjectName(ObjectName.of(file).bucket(), "key")),
            sdk)
        : S3Errors.of(operation, file.toString(), reason);
  }

  /// Closes the clients. Returns when the CRT's threads use none of their memory any more.
  @Override
  public void close() {
    Cleanup.runAll(closing);
  }

  /// Releases the CRT, at the first close only: a reference that is released twice ends the CRT.
  private void release() {
    if (released.compareAndSet(false, true)) {
      CRT.releaseShutdownRef();
    }
  }

  private void closeBytes() {
    synchronized (bytes) {
      bytes.close();
    }
    bytes.getShutdownCompleteFuture().join();
  }
}
