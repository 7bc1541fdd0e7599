// SPDX-License-Identifier: Apache-2.0
package dev.gantry.s3.testing;

import dev.gantry.core.Location;
import java.io.ByteArrayInputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.gaul.s3proxy.AccessGrant;
import org.gaul.s3proxy.S3Proxy;
import org.gaul.s3proxy.auth.AuthenticationType;
import org.gaul.s3proxy.blobstore.BlobStore;
import org.gaul.s3proxy.nio2blob.FilesystemNio2BlobStore;
import org.gaul.s3proxy.nio2blob.TransientNio2BlobStore;
import software.amazon.awssdk.services.s3.model.PutObjectRequest;

/// An S3 server in this process (s3proxy), which checks signatures. System properties let the AWS
/// SDK of this process find the server; [#close] stops the server and restores the properties.
public final class S3Server implements AutoCloseable {
  public static final String BUCKET = "bucket";
  private static final String USER = "test-user";
  private static final String SECRET = "test-secret";

  private final BlobStore objects;
  private final S3Proxy proxy;
  private final Map<String, String> before = new LinkedHashMap<>();

  private S3Server(BlobStore objects) {
    this.objects = objects;
    proxy =
        S3Proxy.builder()
            .blobStore(objects)
            .endpoint(URI.create("http://127.0.0.1:0"))
            // The CRT client sends a header with the size of an upload in parts. AWS checks the
            // size, but s3proxy does not know the header.
            .ignoreUnknownHeaders(true)
            .awsAuthentication(AuthenticationType.AWS_V4, USER, SECRET)
            .build();
    BlobStore answering = answering();
    proxy.setBlobStoreLocator((_, _, _) -> new AccessGrant(SECRET, answering));
    try {
      proxy.start();
    } catch (Exception e) {
      throw new IllegalStateException("s3proxy does not start", e);
    }
    objects.createContainer(BUCKET);
    set("aws.accessKeyId", USER);
    set("aws.secretAccessKey", SECRET);
    set("aws.region", "us-east-1");
    pointAt(endpoint());
  }

  /// Returns the objects such that none is replaced by [#put] while s3proxy opens it. s3proxy reads an
  /// object's tag before it opens the object, so an answer could have the tag of one version and the
  /// bytes of the next.
  private BlobStore answering() {
    return (BlobStore)
        Proxy.newProxyInstance(
            BlobStore.class.getClassLoader(),
            new Class<?>[] {BlobStore.class},
            (_, method, arguments) -> {
              try {
                if (!method.getName().equals("getBlob")) {
                  return method.invoke(objects, arguments);
                }
                synchronized (objects) {
                  return method.invoke(objects, arguments);
                }
              } catch (InvocationTargetException e) {
                throw e.getTargetException();
              }
            });
  }

  private static final class OfProcess {
    static final S3Server SERVER = inMemory();
  }

  /// Returns the server that the shared session of this process uses until the process ends. A
  /// session reads the settings only once, so no other server may be started before this one.
  /// Callers must not close it.
  public static S3Server ofProcess() {
    return OfProcess.SERVER;
  }

  /// Starts a server that keeps its objects in memory.
  public static S3Server inMemory() {
    return new S3Server(new TransientNio2BlobStore());
  }

  /// Starts a server that keeps its objects in a folder.
  public static S3Server in(Path folder) {
    return new S3Server(new FilesystemNio2BlobStore(folder.toString()));
  }

  public URI endpoint() {
    return URI.create("http://127.0.0.1:" + proxy.getPort());
  }

  /// Makes the SDK's next clients connect to another server, such as a proxy before this one.
  public void pointAt(URI endpoint) {
    set("aws.endpointUrlS3", endpoint.toString());
  }

  /// Sets a system property until [#close] is called.
  public void set(String property, String value) {
    String old = System.setProperty(property, value);
    if (!before.containsKey(property)) {
      before.put(property, old);
    }
  }

  /// Makes an object, or replaces the object with the key.
  public Location put(String key, byte[] bytes) {
    synchronized (objects) {
      objects.putBlob(
          PutObjectRequest.builder()
              .bucket(BUCKET)
              .key(key)
              .contentLength((long) bytes.length)
              .build(),
          new ByteArrayInputStream(bytes));
    }
    return location(key);
  }

  public static Location location(String key) {
    try {
      return new Location.Remote(new URI("s3", BUCKET, "/" + key, null, null));
    } catch (URISyntaxException e) {
      throw new IllegalArgumentException(e);
    }
  }

  @Override
  public void close() {
    before.forEach((property, value) -> {
      if (value == null) {
        System.clearProperty(property);
      } else {
        System.setProperty(property, value);
      }
    });
    try {
      proxy.stop();
      objects.close();
    } catch (Exception e) {
      throw new IllegalStateException("s3proxy does not stop", e);
    }
  }
}
